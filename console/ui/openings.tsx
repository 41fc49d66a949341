import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useMemo,
  useState,
} from "react";
import { plural } from "../app/words.ts";

// A reviewer must not approve unseen parts: parts that are folded away because they are long are counted here, and as long as
// there is one, there is no yes (T13).

interface Openings {
  readonly openAll: boolean;
  readonly folded: number;
  readonly bytes: number;
  open(): void;
  fold(id: string, bytes: number): () => void;
}

const Context = createContext<Openings>({
  openAll: false,
  folded: 0,
  bytes: 0,
  open: () => {},
  fold: () => () => {},
});

export function OpeningsOf({ children }: { children: ReactNode }) {
  const [openAll, setOpenAll] = useState(false);
  const [parts, setParts] = useState<ReadonlyMap<string, number>>(new Map());
  const value = useMemo<Openings>(
    () => ({
      openAll,
      folded: parts.size,
      bytes: [...parts.values()].reduce((sum, bytes) => sum + bytes, 0),
      open: () => setOpenAll(true),
      fold(id, bytes) {
        setParts((known) => new Map(known).set(id, bytes));
        return () =>
          setParts((known) => {
            const rest = new Map(known);
            rest.delete(id);
            return rest;
          });
      },
    }),
    [openAll, parts],
  );
  return <Context value={value}>{children}</Context>;
}

export function useOpenings(): Openings {
  return useContext(Context);
}

interface FoldedProps {
  readonly bytes: number;
  readonly children: ReactNode;
}

/** The rest of something long, drawn when it is asked for. */
export function Folded({ bytes, children }: FoldedProps) {
  const { openAll } = useOpenings();
  const [open, setOpen] = useState(false);
  if (open || openAll) return children;
  return <Fold bytes={bytes} onOpen={() => setOpen(true)} />;
}

function Fold({ bytes, onOpen }: { bytes: number; onOpen: () => void }) {
  const id = useId();
  const { fold } = useOpenings();
  // biome-ignore lint/correctness/useExhaustiveDependencies: called once; the function is new with every change it makes
  useEffect(() => fold(id, bytes), [id, bytes]);
  return (
    <button
      type="button"
      onClick={onOpen}
      className="border-warn bg-warn-soft text-warn my-1 rounded border px-2 text-xs font-medium"
    >
      Show {plural(bytes, "more byte")}
    </button>
  );
}
