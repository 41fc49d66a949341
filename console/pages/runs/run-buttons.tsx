import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { tell } from "../../app/notice.ts";
import { PauseDialog } from "../../app/pause.tsx";
import { meQuery } from "../../app/queries.ts";
import { Button } from "../../ui/button.tsx";

/** What can be done with a whole run: pause it, undo it, send its address to somebody. */
export function RunButtons({ id, onUndo }: { id: string; onUndo: () => void }) {
  const { data: me } = useQuery(meQuery);
  const [isPausing, setPausing] = useState(false);
  const isOperator = me?.roles.includes("operator") === true;
  const mayPause = isOperator || me?.roles.includes("admin") === true;
  const copy = async () => {
    await navigator.clipboard.writeText(location.href);
    tell({ text: "Link copied.", tone: "ok", id: "" });
  };
  return (
    <div className="flex flex-wrap items-center gap-2">
      {!isOperator && <span className="text-muted text-xs">Only operators can undo a run.</span>}
      <Button onClick={() => copy().catch(() => tell(REFUSED))}>Copy link</Button>
      {mayPause && <Button onClick={() => setPausing(true)}>Pause run</Button>}
      {isOperator && (
        <Button tone="danger" onClick={onUndo}>
          Undo run
        </Button>
      )}
      {isPausing && (
        <PauseDialog first={{ kind: "session", subject: id }} onClose={() => setPausing(false)} />
      )}
    </div>
  );
}

const REFUSED = {
  text: "The browser does not allow copying: take the address from its bar.",
  tone: "warn",
  id: "",
} as const;
