// The command that a host starts for each call: the hook inside a shell that refuses for it. Most hosts run the tool when a hook
// hangs, is stopped, prints a line too many or ends without an answer, so the shell passes on one whole answer and nothing else.

import { HOST_SHAPES, type HostName } from "./hosts.ts";

/** Tells the hook that the shell below reads its answer. */
export const GUARDED = "--guarded";

const MARK = " sallyport:";

/** The answer with its length behind it, in ASCII: shells disagree about the length of other characters. */
export function withMark(json: string): string {
  const ascii = json.replaceAll(
    /[\u007f-\uffff]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `${ascii}${MARK}${ascii.length}`;
}

/**
 * Arguments: seconds, the refusal in the host's shape, the words of the hook. What the hook printed is passed on only when its
 * last word is the length of everything before it. Every other end is the refusal, with exit 2 and a text on standard error as
 * second lock. The watchdog uses SIGKILL, because a stopped process heeds nothing else, and ends this shell as well when a child
 * of the hook still holds the pipe. Settings of Node that print something would spoil the answer, so they are left out.
 */
// biome-ignore-start lint/suspicious/noTemplateCurlyInString: for the shell
const SCRIPT = [
  `t=$1 d=$2 m="${MARK}"; shift 2; exec 3<&0;`,
  'no() { printf "%s\\n" "$d"; echo "Not executed: the hook of Sallyport $1." >&2; exit 2; };',
  'a=$({ NODE_OPTIONS= "$@" <&3 3<&- & p=$!;',
  '{ sleep $t & s=$!; trap "kill $s; exit" TERM; wait $s; kill -9 $p; sleep 1; kill -9 $$; } >/dev/null 2>&1 3<&- & w=$!;',
  'wait $p; c=$?; printf " %s" $w; exit $c; });',
  'c=$?; kill "${a##* }" 2>/dev/null; [ $c = 0 ] || no failed;',
  'a="${a% *}"; n="${a##*$m}"; b="${a%$m*}";',
  '[ "$a" = "$b$m$n" ] && [ "${#b}" = "$n" ] || no "gave no valid answer";',
  'printf "%s\\n" "$b" || no "could not answer"',
].join(" ");
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: for the shell

export interface GuardedHook {
  readonly host: HostName;
  /** The words that start the hook. */
  readonly words: readonly string[];
  /** More than the hook allows itself, and less than the host allows it. */
  readonly seconds: number;
}

/** For any shell that a host may use. The words after `||` refuse when the inner shell itself is killed. */
export function guardedCommand({ host, words, seconds }: GuardedHook): string {
  const reason = "Not executed: the hook of Sallyport failed, or did not answer in time.";
  const refusal = JSON.stringify(HOST_SHAPES[host].answer({ decision: "deny", reason }));
  const inner = ["/bin/sh", "-c", SCRIPT, "sallyport", String(seconds), refusal, ...words, GUARDED];
  const last = ["/bin/sh", "-c", `echo "${reason}" >&2; exit 2`];
  return `${shellWords(inner)} || ${shellWords(last)}`;
}

export function shellWords(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}
