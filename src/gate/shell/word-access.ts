import type { Token } from "./token.ts";

/** Which of a program's words are files that it changes. */
type Writes = "all" | "last" | "of=" | "in-place" | "output-option";

// biome-ignore format: a table
const WRITES: Readonly<Record<string, Writes>> = {
  tee: "all", truncate: "all", touch: "all", rm: "all", unlink: "all", shred: "all", srm: "all", mkdir: "all",
  rmdir: "all", chmod: "all", chown: "all", chgrp: "all", setfacl: "all", chattr: "all", patch: "all", sponge: "all",
  vi: "all", vim: "all", nvim: "all", nano: "all", ed: "all", ex: "all", mv: "all", cp: "last", ln: "last",
  install: "last", rsync: "last", scp: "last", dd: "of=", sed: "in-place", gsed: "in-place", perl: "in-place",
  curl: "output-option", wget: "output-option", sort: "output-option", tar: "output-option", unzip: "output-option",
  gcc: "output-option", git: "output-option",
};

/** `-o file`, `-O file`, `-C folder`, `-d folder`, also with the value in the same word. */
const OUTPUT =
  /^(-[oOCd]|--(output|output-document|output-dir|directory|target-directory))(=|$)|^-[oOCd][/~.]/;

/** Does the program read or change the file that this word names, if it names one? */
export function accessOf(
  program: string,
  words: readonly Token[],
  index: number,
): "read" | "write" {
  const text = words[index]?.text ?? "";
  const writes = Object.hasOwn(WRITES, program) ? WRITES[program] : undefined;
  const isWritten = () => {
    switch (writes) {
      case undefined:
        return false;
      case "all":
        return true;
      case "last":
        return index === words.length - 1 || hasTargetOption(words);
      case "of=":
        return text.startsWith("of=");
      case "in-place":
        return words.some((word) => /^-\w*i|^--in-place/.test(word.text));
      case "output-option":
        return OUTPUT.test(text) || OUTPUT.test(words[index - 1]?.text ?? "");
    }
  };
  return isWritten() ? "write" : "read";
}

/** With `cp -t folder` the last word is not the target. */
function hasTargetOption(words: readonly Token[]): boolean {
  return words.some(({ text }) => /^-\w*t|^--target/.test(text));
}
