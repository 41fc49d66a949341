// Texts that try to deceive a reviewer (T13) or to run in their browser (T15). Made from lists and a fixed seed: the same every time.

/** Characters that hide, reorder or cover, and spaces that are none. */
const ODD = [
  0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0x200e, 0x200f, 0x61c, 0x200b, 0x200c, 0x200d,
  0x2060, 0x2061, 0x2063, 0xfeff, 0xad, 0x34f, 0x180e, 0x115f, 0x1160, 0x3164, 0xffa0, 0x2800, 0xe0001, 0xe0041, 0xe007f,
  0xfe0f, 0xe0100, 0x1b, 0x07, 0x08, 0x0d, 0x00, 0x7f, 0x85, 0x9b, 0x2028, 0x2029, 0xa0, 0x2003, 0x3000, 0x205f, 0xfff9,
  0xfffc, 0xe000, 0x10ffff, 0x1d173, 0x0300, 0x0489, 0x20dd,
];
const WORDS = ["refund 10", "transfer", "DROP TABLE", "to: account", "amount", "paypal.com", "yes", "100 EUR"];
const TWINS = ["раураl", "аdmin", "ｐａｙ", "𝐩𝐚𝐲", "Ο0O", "gооgle", "ⅼogin", "сос", "mіcrоsоft", "Ꭺdmin"];

export function spoofs(count: number): readonly string[] {
  const dice = seeded(13);
  const pick = <Item>(list: readonly Item[]) => list[Math.floor(dice() * list.length)] as Item;
  const odd = () => String.fromCodePoint(pick(ODD));
  const makers: readonly (() => string)[] = [
    () => `${pick(WORDS)}${odd()}${pick(WORDS)}`,
    () => `${odd()}${pick(WORDS)} ${odd()}${odd()}${pick(WORDS)}${odd()}`,
    () => `${pick(TWINS)} ${pick(WORDS)}`,
    () => `${pick(WORDS)}${" ".repeat(20 + Math.floor(dice() * 300))}${pick(WORDS)}`,
    () => `${pick(WORDS)}${"\n".repeat(5 + Math.floor(dice() * 60))}${pick(WORDS)}`,
    () => `\u001b[2K\u001b[1A${pick(WORDS)}\u001b[8m${pick(WORDS)}\u001b[0m`,
    () => `Z${"\u0310\u0341\u034f".repeat(1 + Math.floor(dice() * 20))}${pick(WORDS)}`,
    () => `x", "${pick(WORDS)}": "1`,
    () => `x"\n}\nApproved by: person:ada\n{\n"y`,
    () => `safe\r${pick(WORDS)}`,
    () => `${pick(WORDS)} ↵ ${pick(WORDS)}`,
    () => `\u202e${[...pick(WORDS)].reverse().join("")}\u202c`,
    () => [...pick(WORDS)].map((sign) => String.fromCodePoint(0xe0000 + sign.charCodeAt(0))).join(""),
  ];
  return Array.from({ length: count }, (_, at) => makers[at % makers.length]?.() ?? "");
}

const CODE = "window.canary('KEY')";
const SHAPES: readonly string[] = [
  "<script>CODE</script>",
  "<img src=x onerror=\"CODE\">",
  "<svg onload=CODE>",
  "<svg><script>CODE</script></svg>",
  "\"><script>CODE</script>",
  "'><img src=x onerror=CODE>",
  "javascript:CODE",
  "[click](javascript:CODE)",
  "![x](x\" onerror=\"CODE)",
  "<a href=\"javascript:CODE\">open</a>",
  "<iframe srcdoc=\"<script>CODE</script>\"></iframe>",
  "<details open ontoggle=CODE>",
  "<style>@import 'javascript:CODE';</style>",
  "</textarea><script>CODE</script>",
  "</title><script>CODE</script>",
  "<math><mtext><script>CODE</script></mtext></math>",
  "<template><script>CODE</script></template>",
  "{{constructor.constructor(\"CODE\")()}}",
  "${CODE}",
  "<body onload=CODE>",
  "<input autofocus onfocus=CODE>",
  "<object data=\"javascript:CODE\"></object>",
  "<embed src=\"data:text/html,<script>CODE</script>\">",
  "<form action=\"javascript:CODE\"><button>go</button></form>",
  "data:text/html,<script>CODE</script>",
  "&#60;script&#62;CODE&#60;/script&#62;",
  "\\u003cscript\\u003eCODE\\u003c/script\\u003e",
  "<scr<script>ipt>CODE</scr</script>ipt>",
  "<ScRiPt>CODE</sCrIpT>",
  "<script\u0000>CODE</script>",
  "<img src=`x`onerror=CODE>",
  "<video><source onerror=CODE></video>",
  "<marquee onstart=CODE>",
  "<xss style=\"animation-name:x\" onanimationstart=CODE>",
  "--><script>CODE</script><!--",
  "]]><script>CODE</script>",
  "+ADw-script+AD4-CODE+ADw-/script+AD4-",
  "<base href=\"javascript:CODE//\">",
  "<meta http-equiv=refresh content=\"0;url=javascript:CODE\">",
  "<link rel=stylesheet href=\"javascript:CODE\">",
];

export function attacks(count: number): readonly string[] {
  const around = ["", " ", "x ", "\n", "\"", "'", "`", "\u0000"];
  return Array.from({ length: count }, (_, at) => {
    const shape = SHAPES[at % SHAPES.length] ?? "";
    const before = around[Math.floor(at / SHAPES.length) % around.length] ?? "";
    return before + shape.replaceAll("CODE", CODE.replace("KEY", String(at)));
  });
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
