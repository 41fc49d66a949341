import { render } from "./render.ts";

/** One answer on standard output: JSON for scripts, words for people. */
export function print(value: unknown, { json }: { readonly json?: boolean }): void {
  process.stdout.write(`${json === true ? JSON.stringify(value) : render(value)}\n`);
}

/** A line about what is going on, on standard error so that it never mixes with an answer. */
export function progress(text: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r${text.padEnd(70)}` : `${text}\n`);
}

export function progressEnd(): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${" ".repeat(70)}\r`);
}
