import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

export interface Sending {
  readonly busy: boolean;
  readonly error: unknown;
  /** Sends it, reads again what it changed, and only then reports success. */
  run(doing: () => Promise<unknown>): Promise<void>;
}

/** One action of a dialog about a list: it stays open, with the refusal in it, until the server has accepted. */
export function useSending(changes: readonly string[], onDone: () => void): Sending {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  return {
    busy,
    error,
    async run(doing) {
      if (busy) return;
      setBusy(true);
      setError(null);
      try {
        await doing();
        await queries.refetchQueries({ queryKey: changes });
        onDone();
      } catch (problem) {
        setError(problem);
      }
      setBusy(false);
    },
  };
}
