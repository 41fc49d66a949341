import { render } from "./render.ts";

/** Prints one answer: JSON for scripts, text for people. */
export function print(value: unknown, { json }: { readonly json?: boolean }): void {
  process.stdout.write(`${json === true ? safeJson(value) : render(value)}\n`);
}

/** JSON in which control and invisible characters are escaped. */
export function safeJson(value: unknown): string {
  return (JSON.stringify(value) ?? "null").replace(
    /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (sign) =>
      Array.from(
        { length: sign.length },
        (_, at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`,
      ).join(""),
  );
}

/** A progress line, on standard error so that it never mixes with the answer. */
export function progress(text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r${text.padEnd(70)}` : `${text}\n`);
}

export function progressEnd(): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${" ".repeat(70)}\r`);
}

/** Exit codes for scripts. `docs/reference/cli.md` lists the same rows. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  unreachable: 4,
  unanchored: 5,
  tampered: 6,
} as const;

export const EXIT_WORDS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: "Success.",
  failed: "Failed: an internal error, an unusable store, or a failed check of `doctor`.",
  usage: "Wrong usage: an unknown command or flag.",
  refused: "Refused by the server or the command.",
  unreachable: "No server or store answers.",
  unanchored:
    "`audit verify`: the chain is intact, but no recent anchor covers its end, so missing entries there cannot be detected.",
  tampered:
    "`audit verify`, `store check`: entries or records were changed, deleted or rolled back.",
};
