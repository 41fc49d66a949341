/** Longer commands are programs; a person should read them. */
const LONGEST = 16 * 1024;
const MOST_LINES = 500;

/**
 * The parser looks ahead from each opening bracket, so its time grows with openings times length: 16 KiB of `$[` took
 * 2.5 s on a busy machine. Within this budget the worst input we found stays below 20 ms of processor time.
 */
const MOST_WORK = 200_000;
const MOST_OPENINGS = 256;

/** Why a command cannot be inspected, as the rest of a sentence; undefined when it can. */
export function inspectionProblem(command: string): string | undefined {
  if (command.trim() === "") return "it is empty";
  if (command.length > LONGEST) return `it is longer than ${LONGEST} characters`;
  if (!command.isWellFormed()) return "it holds half of a surrogate pair";
  // What a reviewer cannot see, or sees in another order, could be anything; shells disagree about some of these too.
  if (/[^\P{Cc}\n\t]|\p{Cf}|[^\P{Z} ]/u.test(command)) {
    return "it holds control characters, invisible characters or unusual spaces";
  }
  const openings = command.match(/[$<>!@?+*]?[([{]|`|<<|"/g)?.length ?? 0;
  const lines = command.match(/\n/g)?.length ?? 0;
  if (openings * command.length > MOST_WORK || openings > MOST_OPENINGS || lines > MOST_LINES) {
    return "it has too many brackets, quotes or lines for its length";
  }
  return undefined;
}
