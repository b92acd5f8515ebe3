"""Configurations as files ``config.json`` have them, of models that the book's table has not, and nonsense."""

GQA = {"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
WINDOWS = {"layer_types": ["sliding_attention"] * 3 + ["full_attention"], "sliding_window": 4096}

# What is pasted, its billions of weights, and what it keeps: numbers that grow with each token, and numbers that do
# not, beyond 2**17 tokens.
CONFIGS = {
    "one head a key": ({"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}, 7, 32 * 2 * 4096, 0),
    "groups": (GQA | {"num_hidden_layers": 32, "max_window_layers": 28, "use_sliding_window": False,
                      "sliding_window": 131072, "model_type": "qwen2"}, 8, 32 * 2 * 8 * 128, 0),
    "every layer a window": (GQA | {"num_hidden_layers": 32, "sliding_window": 4096, "model_type": "mistral"},
                             7.2, 0, 32 * 2 * 8 * 128 * 4096),
    "three windows in four": (GQA | WINDOWS | {"num_hidden_layers": 32, "layer_types": WINDOWS["layer_types"] * 8},
                              8, 8 * 2 * 8 * 128, 24 * 2 * 8 * 128 * 4096),
    "experts": (GQA | {"num_hidden_layers": 32, "num_local_experts": 8, "num_experts_per_tok": 2,
                       "sliding_window": None, "intermediate_size": 14336}, 46.7, 32 * 2 * 8 * 128, 0),
    "latents": ({"num_hidden_layers": 61, "num_attention_heads": 64, "num_key_value_heads": 64, "kv_lora_rank": 512,
                 "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "hidden_size": 7168,
                 "n_routed_experts": 384, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
                 "first_k_dense_replace": 1}, 1026, 61 * 576, 0),
    "an index, one key for two": ({"text_config": {
        "num_hidden_layers": 4, "num_attention_heads": 8, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "index_topk": 16,
        "index_head_dim": 6, "index_n_heads": 2, "index_kpool": 2, "indexer_types": ["full", "shared"] * 2}},
        0.5, 4 * 40 + 2 * 3, 0),
    "states": ({"num_hidden_layers": 8, "full_attention_interval": 4, "num_attention_heads": 16, "head_dim": 256,
                "num_key_value_heads": 2, "linear_num_value_heads": 32, "linear_num_key_heads": 16,
                "linear_key_head_dim": 128, "linear_value_head_dim": 64}, 4, 2 * 2 * 2 * 256, 6 * 32 * 128 * 64),
    "letters": ({"num_hidden_layers": 6, "hybrid_override_pattern": "M-M*-E", "num_attention_heads": 4, "head_dim": 32,
                 "num_key_value_heads": 2, "mamba_num_heads": 8, "mamba_head_dim": 16, "ssm_state_size": 64,
                 "mamba_chunks_kept": 3, "n_routed_experts": 4}, 1, 2 * 2 * 32, 2 * 8 * 16 * 64),
    "other values, shared layers": ({
        "num_hidden_layers": 6, "layer_types": ["sliding_attention", "full_attention"] * 3, "sliding_window": 100,
        "num_attention_heads": 8, "num_key_value_heads": 4, "swa_num_key_value_heads": 2, "head_dim": 192,
        "v_head_dim": 128, "num_kv_shared_layers": 2}, 2, 2 * 4 * 320, 2 * 2 * 320 * 100),
    "one vector for four": ({
        "num_hidden_layers": 3, "compress_ratios": [0, 4, 128, 4], "o_lora_rank": 64, "num_attention_heads": 64,
        "head_dim": 512, "sliding_window": 128, "index_topk": 512, "index_head_dim": 128, "index_n_heads": 64},
        1, 128 + 32 + 4, 3 * 128 * 512),
}  # fmt: skip

NONSENSE = {  # what is pasted, and how the sentence begins
    "[1, 2]": "config must be a dict of names and values",
    "{}": "config must have num_hidden_layers, got none",
    '{"num_hidden_layers": "61"}': "num_hidden_layers must be a whole number",
    '{"num_hidden_layers": true}': "num_hidden_layers must be a whole number",
    '{"num_hidden_layers": 1e9}': "num_hidden_layers must be between 1 and 10000",
    '{"num_hidden_layers": 2}': "config must have num_attention_heads, got none",
    '{"num_hidden_layers": 2, "num_attention_heads": 8}': "config must have hidden_size, got none",
    '{"num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 4}': "hidden_size must be between 8 and",
    '{"num_hidden_layers": 2, "num_attention_heads": 8, "kv_lora_rank": 9}': "config must have qk_rope_head_dim",
    '{"num_hidden_layers": 2, "layer_types": 7}': "layer_types must be a list",
    '{"num_hidden_layers": 2, "layer_types": ["full_attention"]}': "layer_types must name 2 layers, got 1",
    '{"num_hidden_layers": 1, "layer_types": ["<img src=x onerror=alert(1)>"]}': "layer_types must be kinds that are",
    '{"num_hidden_layers": 1, "layer_types": [["full_attention"]]}': "layer_types must be kinds that are",
    '{"num_hidden_layers": 1, "layer_types": ["conv"]}': "config must have layers that keep something, got none",
    '{"num_hidden_layers": 1, "layer_types": ["linear_attention"]}': "config must have linear_num_heads, got none",
    '{"num_hidden_layers": 2, "sliding_window": 4096, "model_type": "gemma2"}': "layer_types must say which",
    '{"num_hidden_layers": 1, "compress_ratios": [7]}': "layer_types must be kinds that are",
}
