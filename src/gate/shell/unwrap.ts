import { isOpaque } from "./carriers.ts";
import { programName, type Token, UNKNOWN_TOKEN } from "./token.ts";
import { OTHER_SHELLS, READABLE_SHELLS, type Wrapper, wrapperNamed } from "./wrappers.ts";

/** What stands behind the first word of a command. */
export type Unwrapped =
  /** Nothing: the command is what it looks like. */
  | { readonly kind: "plain" }
  /** Another command, without its wrapper. */
  | {
      readonly kind: "command";
      readonly words: readonly Token[];
      readonly variables: readonly Token[];
      readonly consent?: string;
    }
  /** A text that a shell will read. */
  | { readonly kind: "script"; readonly text: Token; readonly why?: string }
  /** Something that cannot be taken apart; says why, as the rest of a sentence. */
  | { readonly kind: "unreadable"; readonly why: string };

const PLAIN: Unwrapped = { kind: "plain" };

export function unwrap(words: readonly Token[]): Unwrapped {
  const name = programName(words[0]);
  if (READABLE_SHELLS.has(name)) return shellScript(words, name);
  if (OTHER_SHELLS.has(name)) return unreadable(`${name} is a shell of its own kind`);
  if (name === "eval") return evaluated(words);
  if (isOpaque(name)) return unreadable(`"${name}" can run anything`);
  const wrapper = wrapperNamed(name);
  return wrapper === undefined ? PLAIN : withoutWrapper(words, wrapper, name);
}

function unreadable(why: string): Unwrapped {
  return { kind: "unreadable", why };
}

/** Read for its dangers, but never enough to be allowed: what eval gets has been through the shell once already. */
function evaluated(words: readonly Token[]): Unwrapped {
  const text = words.slice(1).map((word) => word.text);
  const known = words.every((word) => word.known);
  return { kind: "script", text: { text: text.join(" "), known }, why: '"eval" can run anything' };
}

/** `sh -c text`, `bash -lc text`, `bash -euo pipefail -c text`; a shell that reads a file or its input is unreadable. */
function shellScript(words: readonly Token[], name: string): Unwrapped {
  let hasScript = false;
  let why: string | undefined;
  for (let at = 1; at < words.length; at += 1) {
    const { text, known } = words[at] ?? UNKNOWN_TOKEN;
    if (!known) break;
    if (!/^[-+]/.test(text) || text === "-") {
      return hasScript
        ? {
            kind: "script",
            text: words[at] ?? UNKNOWN_TOKEN,
            ...(why === undefined ? {} : { why }),
          }
        : unreadable(`${name} would run a file; run the file itself, such as ./build.sh`);
    }
    if (/^--(login|noprofile|norc)$/.test(text)) continue;
    if (!/^[-+][abefhiklmnprtuvxBCEHPTDcoO]+$/.test(text)) break;
    if (text.startsWith("-") && text.includes("c")) hasScript = true;
    // Each o or O takes a word; more than one in a cluster is nothing anybody writes.
    if (/[oO].*[oO]/.test(text)) break;
    const isSetting = /[oO]/.test(text);
    if (!/^-[celu]*o?$/.test(text) || (isSetting && words[at + 1]?.text !== "pipefail")) {
      // -k takes assignments behind the program, -x evaluates PS4, -i reads more files: read for its dangers only.
      why = `options of ${name} change what its text means`;
    }
    if (isSetting) at += 1;
  }
  return unreadable(`what ${name} would run cannot be seen`);
}

function withoutWrapper(words: readonly Token[], wrapper: Wrapper, name: string): Unwrapped {
  if (name === "command" && /^-p?[vV]$/.test(words[1]?.text ?? "")) return PLAIN;
  let at = 1;
  for (; at < words.length; at += 1) {
    const { text, known } = words[at] ?? UNKNOWN_TOKEN;
    if (!known) return unreadable(`the options of ${name} are not fixed`);
    if (text === "--") {
      at += 1;
      break;
    }
    if (!text.startsWith("-") || text === "-") break;
    const taken = wordsTaken(text, wrapper);
    if (taken === undefined) return unreadable(`the option ${text} of ${name} is not known here`);
    at += taken - 1;
  }
  const rest = words.slice(at + (wrapper.operands ?? 0));
  // With nothing before the sign, too: `env =x ls` runs ls.
  const isVariable = ({ text }: Token) => wrapper.setsVariables === true && text.includes("=");
  const start = rest.findIndex((word) => !isVariable(word));
  // Without a program behind it a wrapper only shows something, as `env` does.
  if (start < 0) return rest.length === 0 ? PLAIN : unreadable(`${name} only sets variables`);
  return {
    kind: "command",
    words: [...rest.slice(start), ...(wrapper.addsWords === true ? [UNKNOWN_TOKEN] : [])],
    variables: rest.slice(0, start),
    ...(wrapper.consent === undefined ? {} : { consent: wrapper.consent }),
  };
}

/** True when the word means the program of that name everybody means: `env`, `/usr/bin/env`, but not `./env` or `ENV`. */
export function isStandard(word: Token | undefined): boolean {
  const text = word?.text ?? "";
  const name = programName(word);
  return (
    text === name || (/^(\/usr(\/local)?)?\/s?bin\/[^/]+$/.test(text) && text.endsWith(`/${name}`))
  );
}

/** How many words an option takes, itself included; undefined when it is not in the table. */
function wordsTaken(option: string, wrapper: Wrapper): number | undefined {
  if (option.startsWith("--")) {
    const [long = "", value] = option.slice(2).split(/=(.*)/s);
    if (wrapper.longFlags?.includes(long) === true && value === undefined) return 1;
    if (wrapper.longValued?.includes(long) === true) return value === undefined ? 2 : 1;
    return undefined;
  }
  if (wrapper.numberFlag === true && /^-\d+$/.test(option)) return 1;
  for (let at = 1; at < option.length; at += 1) {
    const letter = option[at] ?? "";
    if (wrapper.valued?.includes(letter) === true) return at === option.length - 1 ? 2 : 1;
    if (wrapper.flags?.includes(letter) !== true) return undefined;
  }
  return 1;
}
