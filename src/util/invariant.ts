/** Something that cannot happen did. Not for what a caller, a network or a reviewer can cause: those have codes. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";

  constructor(message: string) {
    super(`sallyport: this is a bug: ${message}`);
  }
}

/** Stops this piece of work loudly when our own reasoning turns out wrong, before a wrong record is written. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
