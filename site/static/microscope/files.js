// What files of weights hold: safetensors, whole or split, and .npy, read by slices, one tensor at a time. A refusal is an
// error whose message is a sentence to read. What measures is sent to a worker as text, after the book's linear algebra
// (linalg.js): each function gets what those before it return, and sees nothing else.
{
  /** Numbers in each format. */
  const formats = () => {
    // A format has its bits of exponent and mantissa; E4M3 has no infinity, and NaN where all bits are set.
    const SMALL = { __proto__: null, F16: [5, 10], BF16: [8, 7], F8_E4M3: [4, 3], F8_E5M2: [5, 2] },
      PLAIN = { __proto__: null, F32: Float32Array, F64: Float64Array };
    const SIZES = {
      __proto__: null, // so that no type is called like a property of every object
      F64: 8,
      F32: 4,
      F16: 2,
      BF16: 2,
      F8_E4M3: 1,
      F8_E5M2: 1,
      I64: 8,
      I32: 4,
      I16: 2,
      I8: 1,
      U64: 8,
      U32: 4,
      U16: 2,
      U8: 1,
      BOOL: 1,
    };
    const isPacked = (dtype) => /^[IU](8|32)$/.test(dtype);
    const isFloat = (dtype) => dtype in SMALL || dtype in PLAIN;
    const tables = {};
    /** The numbers that all codes of a small format stand for. */
    const tableOf = (dtype) => {
      const [e, m] = SMALL[dtype],
        codes = 2 ** (8 * SIZES[dtype]),
        last = 2 ** e - 1,
        bias = 2 ** (e - 1) - 1;
      return (tables[dtype] ??= Float32Array.from({ length: codes }, (_, code) => {
        const sign = code < codes / 2 ? 1 : -1,
          power = (code >> m) & last,
          part = code & (2 ** m - 1);
        if (power === last && dtype !== "F8_E4M3") return part ? NaN : sign * Infinity;
        if (power === last && part === 2 ** m - 1) return NaN;
        return sign * (power ? 1 + part / 2 ** m : part / 2 ** (m - 1)) * 2 ** (power - bias);
      }));
    };
    const decode = (dtype, buffer) => {
      if (dtype in PLAIN) return new PLAIN[dtype](buffer);
      const table = tableOf(dtype),
        codes = SIZES[dtype] === 2 ? new Uint16Array(buffer) : new Uint8Array(buffer);
      return new Float32Array(codes.length).map((_, i) => table[codes[i]]);
    };
    const wide = new Float64Array(1),
      halves = new Uint32Array(wide.buffer);
    /** The code of F16 or BF16 whose number is nearest, of two the even one. */
    const codeOf = (dtype, x) => {
      const [e, m] = SMALL[dtype],
        sign = x < 0 ? 2 ** (e + m) : 0,
        bias = 2 ** (e - 1) - 1,
        infinite = (2 ** e - 1) * 2 ** m;
      wide[0] = Math.abs(x);
      const power = Math.max(((halves[1] >>> 20) & 0x7ff) - 1023, 1 - bias);
      const steps = wide[0] / 2 ** (power - m) + 2 ** 52 - 2 ** 52; // a sum with 2^52 is rounded to a whole number
      return sign + Math.min((power + bias - 1) * 2 ** m + steps, infinite);
    };
    const encode = (dtype, numbers) =>
      dtype in PLAIN
        ? PLAIN[dtype].from(numbers)
        : Uint16Array.from(numbers, (x) => codeOf(dtype, x));
    /** What a number becomes in bfloat16. */
    const inBfloat16 = (x) => tableOf("BF16")[codeOf("BF16", x)];
    return { SIZES, isPacked, isFloat, decode, encode, inBfloat16 };
  };

  /** What the header of a safetensors file says, checked to the last byte. */
  const headers = ({ SIZES }) => {
    const MOST_HEADER = 25e6; // bytes
    const refuse = (words) => {
      throw new Error(words);
    };
    const isCount = (x) => Number.isSafeInteger(x) && x >= 0;
    const parse = (text, what) => {
      try {
        const value = JSON.parse(text);
        return value && typeof value === "object" && !Array.isArray(value) ? value : refuse("");
      } catch {
        return refuse(`${what} is not JSON that can be read, or no table of names.`);
      }
    };
    /** How many names stand at the first level of a JSON text, those that stand twice among them. */
    const countNames = (text) => {
      let depth = 0,
        names = 0;
      for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"\s*:?|[{}[\]]/g)) {
        depth += "{[".includes(token) ? 1 : "}]".includes(token) ? -1 : 0;
        if (depth === 1 && token.endsWith(":")) names++;
      }
      return names;
    };
    const checkTensor = (name, given, room) => {
      const { dtype, shape, data_offsets: offsets } = given ?? {};
      if (
        typeof dtype !== "string" ||
        !Array.isArray(shape) ||
        !shape.every(isCount) ||
        shape.length > 8
      )
        refuse(`The entry “${name}” has no type or no shape of whole numbers.`);
      if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount))
        refuse(`The entry “${name}” has no place in the file.`);
      const [begin, end] = offsets,
        numbers = shape.reduce((product, side) => product * side, 1);
      if (begin > end) refuse(`“${name}” ends before it begins.`);
      if (end > room) refuse(`“${name}” ends ${end - room} bytes past the end of the file.`);
      if (dtype in SIZES && numbers * SIZES[dtype] !== end - begin)
        refuse(
          `“${name}” has shape (${shape.join(", ")}) in ${dtype}, which takes ${numbers * SIZES[dtype]} bytes, but ${end - begin} are set aside.`,
        );
      return { name, dtype, shape, begin, end };
    };
    const safetensors = async (file) => {
      if (file.size < 10) refuse("It is too short for a safetensors file.");
      const length = new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true);
      if (length > BigInt(file.size) - 8n)
        refuse(
          `It's no safetensors file, or was cut short: its header would take ${length} bytes.`,
        );
      if (length > BigInt(MOST_HEADER))
        refuse(`Its header takes ${length} bytes, and this page reads ${MOST_HEADER} at most.`);
      const start = 8 + Number(length),
        text = await file.slice(8, start).text(),
        header = parse(text, "Its header");
      if (countNames(text) !== Object.keys(header).length)
        refuse("A name stands twice in its header.");
      if (Object.keys(header).some((name) => name.length > 1000))
        refuse("A name in its header has more than 1,000 characters.");
      const found = Object.keys(header)
        .filter((name) => name !== "__metadata__")
        .map((name) => checkTensor(name, header[name], file.size - start));
      found.sort((one, other) => one.begin - other.begin || one.end - other.end);
      let at = 0,
        before = "";
      for (const { name, begin, end } of found) {
        if (begin < at) refuse(`“${before}” and “${name}” overlap.`);
        if (begin > at) refuse(`${begin - at} bytes before “${name}” belong to no tensor.`);
        [at, before] = [end, name];
      }
      if (at !== file.size - start)
        refuse(`${file.size - start - at} bytes at the end belong to no tensor.`);
      return {
        metadata: header.__metadata__ ?? null,
        tensors: found.map((one) => ({
          ...one,
          file,
          at: start + one.begin,
          size: one.end - one.begin,
        })),
      };
    };
    return { MOST_HEADER, refuse, parse, checkTensor, safetensors };
  };

  /** Files of each kind, and a safetensors file to be saved. */
  const kindsOfFiles = ({ MOST_HEADER, refuse, parse, checkTensor, safetensors }) => {
    const npy = async (file) => {
      const head = new DataView(await file.slice(0, 12).arrayBuffer()),
        short = head.byteLength === 12 && head.getUint8(6) === 1;
      const length =
          head.byteLength < 12 ? 0 : short ? head.getUint16(8, true) : head.getUint32(8, true),
        start = (short ? 10 : 12) + length;
      if (!length || length > 65535 || start > file.size)
        refuse("Its header is longer than the file, or empty.");
      const text = await file.slice(start - length, start).text();
      const [, order, kind] =
        text.match(/'descr': *'([<>|=])(\w+)'/) ??
        refuse("It holds records, which this page doesn't read.");
      const dtype = { f2: "F16", f4: "F32", f8: "F64" }[kind];
      if (kind.startsWith("O"))
        refuse("It holds Python objects, which could run code when loaded.");
      if (!dtype) refuse(`It holds numbers of type ${kind}; this page reads f2, f4, and f8.`);
      if (order === ">") refuse(`Its numbers are big-endian: save a.astype("<${kind}").`);
      const [, sides] =
        text.match(/'shape': *\(([\d, ]*)\)/) ?? refuse("Its header names no shape.");
      const shape = sides
          .split(",")
          .filter((side) => side.trim())
          .map(Number),
        fortran = /'fortran_order': *True/.test(text);
      if (fortran && shape.length > 2)
        refuse(
          "It lies in Fortran's order with more than two axes: save numpy.ascontiguousarray(a).",
        );
      if (fortran) shape.reverse(); // the transposed matrix, which has the same singular values
      const size = file.size - start,
        name = file.name.replace(/\.npy$/, "") + (fortran ? " (transposed)" : "");
      return {
        metadata: null,
        tensors: [
          {
            ...checkTensor(name, { dtype, shape, data_offsets: [0, size] }, size),
            file,
            at: start,
            size,
          },
        ],
      };
    };
    /** What a file is: tensors, or the content of a configuration or an index. */
    const openFile = async (file) => {
      const magic = new Uint8Array(await file.slice(0, 6).arrayBuffer());
      if (String.fromCharCode(...magic) === "\x93NUMPY") return npy(file);
      if (magic[0] === 80 && magic[1] === 75)
        refuse(
          "It is a zip file, such as torch.save writes, which could run code when loaded. Save it with safetensors.",
        );
      if (!/\.json$/i.test(file.name)) return safetensors(file);
      if (file.size > MOST_HEADER)
        refuse(`It takes ${file.size} bytes, and this page reads ${MOST_HEADER} at most.`);
      return { json: parse(await file.text(), "It") };
    };
    /** A safetensors file of tensors { name, dtype, shape, data } as a Blob. */
    const pack = (tensors, metadata) => {
      let at = 0;
      const entries = tensors.map(({ name, dtype, shape, data }) => [
        name,
        { dtype, shape, data_offsets: [at, (at += data.byteLength ?? data.size)] },
      ]);
      const text = JSON.stringify(
        Object.fromEntries(metadata ? [["__metadata__", metadata], ...entries] : entries),
      );
      const bytes = new TextEncoder().encode(text),
        padded = new Uint8Array(Math.ceil(bytes.length / 8) * 8).fill(32);
      padded.set(bytes);
      return new Blob([
        new BigUint64Array([BigInt(padded.length)]),
        padded,
        ...tensors.map(({ data }) => data),
      ]);
    };
    return { openFile, pack };
  };

  /** The numbers of one tensor, or why it cannot be read. */
  const tensors = ({ SIZES, isPacked, isFloat, decode, refuse }) => {
    const MOST_NUMBERS = 2 ** 26,
      MOST_SIDE = 8192; // of one weight: 256 MB decoded, 512 MB for its Gram matrix
    const sides = ({ shape }) => [
      shape[0],
      shape.slice(1).reduce((product, side) => product * side, 1),
    ];
    /** The scales of an F8 weight, in a type of 16 bits or more and under one of two names. */
    const scalesOf = ({ name }, others) =>
      ["_scale_inv", "_scale"]
        .map((end) => others?.get(name + end))
        .find((scales) => scales && isFloat(scales.dtype) && SIZES[scales.dtype] > 1);
    /** Why a tensor with so many axes at most cannot be read, or nothing. */
    const flaw = (tensor, others, axes) => {
      const { dtype, shape } = tensor;
      if (isPacked(dtype))
        return `It is packed in 4 bits or 8 (${dtype}); this page can't read that.`;
      if (!isFloat(dtype)) return `This page doesn't read the type ${dtype}.`;
      if (shape.length > axes)
        return `It has ${shape.length} axes, as fused experts or convolutions have; this page reads weights with two.`;
      if (dtype.startsWith("F8") && !scalesOf(tensor, others))
        return "It is in 8 bits, and this page found no scales that it knows.";
      const [m, n] = sides(tensor);
      if (m * n > MOST_NUMBERS || Math.min(m, n) > MOST_SIDE)
        return `It has ${shape.join(" × ")} numbers, and this page measures ${MOST_NUMBERS} at most, ${MOST_SIDE} to the shorter side. In Python, rank_report(weights, rank=64) finds the leading ones.`;
      return "";
    };
    /** All numbers of a tensor, checked. An F8 weight is multiplied with its scales. */
    const loadTensor = async (tensor, others) => {
      const buffer = await tensor.file
        .slice(tensor.at, tensor.at + tensor.size)
        .arrayBuffer()
        .catch(() => "");
      if (buffer.byteLength !== tensor.size)
        refuse("A file has changed since it was opened. Choose it again.");
      const numbers = decode(tensor.dtype, buffer),
        scales = tensor.dtype.startsWith("F8") && scalesOf(tensor, others);
      if (scales) multiply(numbers, tensor, scales, (await loadTensor(scales)).numbers);
      let largest = 0;
      for (let i = 0; i < numbers.length; i++) {
        if (!(Math.abs(numbers[i]) < Infinity))
          refuse(`It holds ${numbers[i]}, so it has no singular values.`);
        largest = Math.max(largest, Math.abs(numbers[i]));
      }
      return { numbers, largest };
    };
    const multiply = (numbers, tensor, scales, factors) => {
      const [m, n] = sides(tensor),
        rows = sides(scales)[0] || 1,
        columns = factors.length / rows;
      const tall = factors.length === 1 ? m : rows === m ? 1 : 128,
        broad = columns === 1 ? n : 128; // blocks of 128, as DeepSeek has them
      if (Math.ceil(m / tall) !== rows || Math.ceil(n / broad) !== columns)
        refuse(
          `Its scales have shape (${scales.shape.join(", ")}), which fits no block that this page knows.`,
        );
      for (let at = 0; at < numbers.length; at++)
        numbers[at] *=
          factors[Math.floor(Math.floor(at / n) / tall) * columns + Math.floor((at % n) / broad)];
    };
    return { sides, flaw, loadTensor };
  };

  window.microscopeParts = [formats, headers, kindsOfFiles, tensors];
}
