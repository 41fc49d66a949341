/**
 * How sentences begin that tell an agent what to do next. Answers to calls end with one, because a model reads them. People
 * decide and operate; the same sentence on their screen tells them to do something that they cannot do.
 */
const FOR_AGENTS: readonly string[] = [
  "Go on with something else",
  "Do not repeat",
  "Propose it again",
  "Propose the call again",
  "Look first, then propose",
  "Look again later",
  "Tell the operator, and propose",
  "Change the call",
  "Correct these places",
  "Wait until it is resumed",
  "Stop working on this task",
  "Stop, and report back",
  "Ask what to do instead",
  "Take that way",
  "Take another",
  "Write it and call again",
  "Use an absolute path",
  "Bring the run there first",
  "Revise the plan first",
  "Do not take silence for a yes",
];

/** An answer to a call without the advice to the agent at its end. */
export function forPeople(text: string): string {
  let rest = text.trimEnd();
  for (;;) {
    const start = lastSentence(rest);
    const sentence = rest.slice(start);
    if (!FOR_AGENTS.some((opening) => sentence.startsWith(opening))) return rest;
    const shorter = rest.slice(0, start).trimEnd();
    // Nothing but advice: better than an empty message.
    if (shorter === "") return rest;
    rest = shorter;
  }
}

/** Where the last sentence of a text begins. */
function lastSentence(text: string): number {
  const end = text.length - 1;
  const stops = [". ", ".\n", "\n"].map((stop) => {
    const at = text.lastIndexOf(stop, end - 1);
    return at < 0 ? 0 : at + stop.length;
  });
  return Math.max(...stops);
}
