// What each layer of a model keeps, read from its config.json as caches/configs.py reads it, by the same table of types.
const readConfig = (config, types) => {
  const RUN = "run AutoConfig.from_pretrained(...).to_dict() and paste that, written by json.dumps";
  const ENTER = "enter layers, groups, and width yourself";
  const isDict = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const refuse = (rule, value, way) => {
    throw new Error(rule + ", got " + (JSON.stringify(value) || "none") + ": " + way);
  };
  if (!isDict(config)) check.fail("config", "a dict of names and values", config);
  if (types.wrappers.includes(config.model_type)) {
    if (!isDict(config.text_config)) refuse("config must have text_config", undefined, RUN);
    config = config.text_config;
  }
  const name = config.model_type,
    family = types.families.find((one) => one.types.includes(name));
  if (!family) refuse("config must have a model_type that is read here", name, ENTER);
  const given = new Map(Object.entries(config).filter(([, value]) => value !== null));

  const number = (names, least = 1, most = 2 ** 24) => {
    for (const one of names.split("|")) {
      const [top, bottom] = one.split("/");
      if (!given.has(top)) continue;
      const value = given.get(top),
        divisor = bottom ? number(bottom) : 1,
        low = bottom ? divisor : least;
      if (!Number.isInteger(value)) check.fail(top, "a whole number", value);
      if (value < low || value > most) check.fail(top, "between " + low + " and " + most, value);
      return Math.floor(value / divisor);
    }
    return refuse("config must have " + names.split("|")[0], undefined, RUN);
  };
  const rows = (name, n) => {
    if (!given.has(name)) refuse("config must have " + name, undefined, RUN);
    const list = given.get(name);
    return Array.isArray(list) && list.length === n
      ? list
      : check.fail(name, "a list of " + n + " layers", list);
  };
  const valueOf = (key, value) => {
    if (key === "state") return value.reduce((size, one) => size * number(one), 1);
    return typeof value === "number" ? value : number(value, key === "rotary" ? 0 : 1);
  };
  const isNull = (key, value) => key === "window" && config[value] === null;

  const n = number(family.layers || "num_hidden_layers", 1, 10_000);
  const field = family.field || "layer_types",
    known = Object.keys(family.kinds);
  const layers = known.length === 1 && !given.has(field) ? Array(n).fill(known[0]) : rows(field, n);
  const strange = layers.find((kind) => !known.includes(kind));
  if (strange !== undefined) refuse(field + " must be of " + known.join(", "), strange, ENTER);
  const parts = new Map();
  layers
    .flatMap((kind) => family.kinds[kind])
    .forEach((words) => {
      const part = Object.fromEntries(
        Object.entries(types.parts[words])
          .filter(([key, value]) => !isNull(key, value))
          .map(([key, value]) => [key, valueOf(key, value)]),
      );
      const key = JSON.stringify(part);
      parts.set(key, { ...part, layers: (parts.get(key)?.layers || 0) + 1 });
    });

  const { count, kinds, dense, size, used } = family.experts || {};
  const experts = [0, 1];
  if (count) {
    const all = number(count),
      having = kinds
        ? rows(kinds, n).filter((kind) => kind !== "dense").length
        : n - (dense ? number(dense, 0, n) : 0);
    experts[0] = (having * all * 3 * number("hidden_size") * number(size)) / 1e9;
    experts[1] = number(used, 1, all) / all;
  }

  const specs = Object.values(family.kinds)
    .flat()
    .flatMap((words) => Object.values(types.parts[words]).flat());
  const read = [...specs, ...Object.values(family.experts || {}), "hidden_size", field]
    .concat(family.layers || "num_hidden_layers", "model_type")
    .flatMap((names) => String(names).split(/[|/]/));
  const fixed = { ...types.fixed, ...family.fixed };
  const same = (name) => JSON.stringify(config[name]) === JSON.stringify(fixed[name]);
  const fine = [...types.harmless, ...(family.harmless || []), ...read];
  const unknown = [...given.keys()].filter(
    (name) => !fine.includes(name) && !(Object.hasOwn(fixed, name) && same(name)),
  );
  if (unknown.length)
    throw new Error(
      "config must have fields and values that are known for " +
        name +
        ", got " +
        unknown.sort()[0] +
        ": " +
        ENTER,
    );
  const short = Object.entries(config).filter(([name]) => read.includes(name));
  return {
    parts: [...parts.values()],
    experts: experts[0],
    used: experts[1],
    short: JSON.stringify(Object.fromEntries(short)),
  };
};
