import { useRef } from "react";

// When the page itself puts another question before the reviewer, a key that was meant for the one before must not hit it, nor the
// second half of a double click. What they opened themselves can be decided immediately.

const HOLD_MS = 500;

let movedTo = "";

/** To be called before the page opens another question by itself. */
export function movingOnTo(id: string): void {
  movedTo = id;
}

/** For a button that may stand where another one stood a moment ago: the second click of a double one does nothing. */
export function onceOf(doing: () => unknown): (event: { readonly detail: number }) => void {
  return ({ detail }) => {
    if (detail < 2) doing();
  };
}

/** Says whether an answer given now is meant for this question; false for a moment after the page moved on to it. */
export function useIsMeant(id: string): () => boolean {
  const since = useRef(performance.now());
  return () => movedTo !== id || performance.now() - since.current >= HOLD_MS;
}
