import { useState } from "react";
import { readBack } from "./live.ts";

export interface Act {
  readonly busy: boolean;
  readonly error: unknown;
  /** Sends it, and reports success only after reading the record back. True when it was accepted. */
  run(doing: () => Promise<unknown>): Promise<boolean>;
  clear(): void;
}

/** A person's action on one question. Nothing disappears before the server has accepted it and the question was read again (R13). */
export function useAct(id: string): Act {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  return {
    busy,
    error,
    clear: () => setError(null),
    async run(doing) {
      if (busy) return false;
      setBusy(true);
      setError(null);
      try {
        await doing();
        return true;
      } catch (problem) {
        setError(problem);
        return false;
      } finally {
        // Also after a refusal: most refusals mean that the screen is out of date.
        await readBack(id).catch(setError);
        setBusy(false);
      }
    },
  };
}
