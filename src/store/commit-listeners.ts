/** Who wants to hear that something was committed. A listener that throws must not disturb the commit or the others. */
export class CommitListeners {
  readonly #listeners = new Set<() => void>();

  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch {
        // The hint is best effort by contract: whoever needs certainty polls.
      }
    }
  }
}
