import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { UndoDialog } from "../pages/item/undo-dialog.tsx";
import { Untrusted } from "../ui/untrusted.tsx";
import { useKeys } from "./keys.ts";
import { type Notice, tell, type Undoable, useNotice } from "./notice.ts";

const TONES = {
  ok: "border-ok bg-ok-soft text-ok",
  warn: "border-warn bg-warn-soft text-warn",
  danger: "border-danger bg-danger-soft text-danger",
} as const;

/** Bad news stays until it is dismissed. */
const SHOWN_MS = 12_000;

/** What came of the last action, at the edge of the page: nothing moves when it appears or leaves. */
export function Toast() {
  const notice = useNotice();
  const [undoing, setUndoing] = useState<Undoable>();
  useEffect(() => {
    if (notice === undefined || notice.tone === "danger") return undefined;
    const timer = setTimeout(() => tell(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  const undo = notice?.undo;
  useKeys({ z: undo === undefined ? undefined : () => setUndoing(undo) });
  return (
    <>
      <div
        role="status"
        className="pointer-events-none fixed inset-x-3 bottom-20 z-40 flex sm:right-auto sm:max-w-md lg:bottom-4"
      >
        {notice !== undefined && <Card notice={notice} onUndo={setUndoing} />}
      </div>
      {undoing !== undefined && <UndoDialog {...undoing} onClose={() => setUndoing(undefined)} />}
    </>
  );
}

function Card({ notice, onUndo }: { notice: Notice; onUndo: (undo: Undoable) => void }) {
  const { text, tone, id, undo } = notice;
  return (
    <div
      className={`pointer-events-auto flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg border px-3 py-2 shadow-lg ${TONES[tone]}`}
    >
      <span className="line-clamp-4 min-w-0 font-medium">
        <Untrusted text={text} />
      </span>
      <span className="ml-auto flex items-center gap-3">
        {id !== "" && (
          <Link to="/decisions/$id" params={{ id }} className="text-inherit underline">
            View
          </Link>
        )}
        {undo !== undefined && (
          <button
            type="button"
            aria-keyshortcuts="z"
            className="font-semibold underline"
            onClick={() => onUndo(undo)}
          >
            Undo{" "}
            <span aria-hidden="true" className="hidden no-underline lg:inline">
              <kbd>z</kbd>
            </span>
          </button>
        )}
        <button
          type="button"
          aria-label="Dismiss message"
          className="min-h-6 min-w-6"
          onClick={() => tell(undefined)}
        >
          ✕
        </button>
      </span>
    </div>
  );
}
