"""The same questions, asked of each package that has a layer of Linformer."""
