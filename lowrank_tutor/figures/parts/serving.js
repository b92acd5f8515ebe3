// What fits on graphics cards, and how fast: the arithmetic of caches/serving.py, in the same steps and names.
const GIB = 2 ** 30;
const sum = (list) => list.reduce((all, one) => all + one, 0);
const grouped = (value) => format(value, ",");
const two = (value) =>
  value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

const stored = (part, n, count, split) => {
  if (part.state)
    return (
      ((part.layers * part.state) / part.heads) *
      (split === "data" ? part.heads : Math.ceil(part.heads / count))
    );
  let long = Math.floor(Math.min(n, part.window || n) / (part.every || 1));
  if (split === "tokens") long = Math.ceil(long / count);
  const groups = split === "tensor" ? Math.ceil(part.groups / count) : part.groups;
  const width = part.groups
    ? groups * (part.width + (part.value || part.width))
    : part.latent
      ? part.latent + part.rotary
      : part.index;
  return part.layers * long * width;
};
const moved = (part, n, count, split) =>
  part.state
    ? 2 * stored(part, n, count, split)
    : stored(part, Math.min(n, part.chosen ? part.chosen * (part.every || 1) : n), count, split);
const operations = (part, n) => {
  const all = moved(part, n, 1, "tensor");
  if (part.state) return 2 * all;
  if (part.groups) return ((2 * part.heads) / part.groups) * all;
  return 2 * part.heads * (1 + (part.latent ? part.latent / (part.latent + part.rotary) : 0)) * all;
};
const peak = ({ flops, fp8, fp4 }, bits) =>
  bits > 8 || !fp8 ? flops : bits < 8 && fp4 ? fp4 : fp8;

/** Memory in GiB, chats, tokens a second, and the four lines of the arithmetic, for a state of the figure. */
const serve = ({ parts, experts, used, billions }, gpu, state) => {
  const { cards, split, n, weight_bits: weightBits, cache_bits: cacheBits, other } = state,
    share = state.share / 100;
  const shared = billions - experts,
    onCard = experts / cards + (split === "data" ? shared : shared / cards);
  const weights = (onCard * 1e9 * weightBits) / 8;
  const bits = parts.map((part) => (part.state ? 16 : cacheBits));
  const bytes = (numbers) => sum(numbers.map((count, i) => count * bits[i])) / 8;
  const kept = parts.map((part) => stored(part, n, cards, split)),
    cache = bytes(kept);
  const room = share * gpu.memory - weights - other * GIB;
  const fit = Math.max(0, Math.floor(room / cache)),
    chats = fit * (split === "data" ? cards : 1);

  // The share of the experts that some chat needs
  const needed = 1 - (1 - used) ** chats;
  const weightBytes = ((onCard - (experts / cards) * (1 - needed)) * 1e9 * weightBits) / 8;
  const cacheBytes = fit * bytes(parts.map((part) => moved(part, n, cards, split)));
  const multiplied = 2e9 * (shared + experts * used),
    attended = parts.map((part) => operations(part, n));
  const work = (chats * (multiplied + sum(attended))) / cards;
  const times = attended.map((each, i) => each / peak(gpu, bits[i]));
  const moving = (weightBytes + cacheBytes) / gpu.bandwidth,
    computing = (chats * (multiplied / peak(gpu, weightBits) + sum(times))) / cards;
  const speed = chats / Math.max(moving, computing);

  const bandwidth = grouped(Math.round(gpu.bandwidth / 1e9));
  const gib = (size) => two(size / GIB) + " GiB";
  const why =
    moving >= computing
      ? "reads " +
        gib(weightBytes) +
        " of weights and " +
        gib(cacheBytes) +
        " of caches at " +
        bandwidth +
        " GB/s"
      : "does " + two(work / 1e12) + " trillion operations in " + two(1e3 * computing) + " ms";
  const states = cacheBits < Math.max(...bits) ? " (states 16)" : "";
  const lines = [
    "weights: " +
      two(onCard) +
      " of " +
      two(billions) +
      " billion a card, " +
      weightBits +
      " bits each: " +
      gib(weights),
    "cache: " +
      grouped(sum(kept)) +
      " numbers a card and chat, " +
      cacheBits +
      " bits each" +
      states +
      ": " +
      gib(cache),
    "chats: " +
      share +
      " of " +
      gib(gpu.memory) +
      ", less the weights and " +
      other +
      " GiB of other memory, leave " +
      gib(room) +
      ": " +
      grouped(fit) +
      " on a card, " +
      grouped(chats) +
      " in all",
    chats
      ? "speed: for one token of each chat a card " +
        why +
        ": without speculative decoding at most " +
        grouped(Math.round(speed)) +
        " tokens a second in all"
      : "speed: none, for no chat fits",
  ];
  const memory = gpu.memory / GIB;
  return {
    weights: weights / GIB,
    cache: cache / GIB,
    chats,
    speed,
    fit,
    memory,
    usable: share * memory,
    lines,
  };
};
