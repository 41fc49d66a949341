import { useState } from "react";
import { client } from "../../app/client.ts";
import { Button } from "../../ui/button.tsx";
import { Problem } from "../../ui/panel.tsx";

/** Fetched and then saved: a plain link would send the cookie without the page's key and be refused. */
export function ExportTrail() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  async function save(): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      const response = await client.exportAudit();
      const address = URL.createObjectURL(await response.blob());
      const link = document.createElement("a");
      link.href = address;
      link.download = "audit.jsonl";
      link.click();
      URL.revokeObjectURL(address);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }
  return (
    <div>
      <Button disabled={busy} onClick={save}>
        Export as JSON Lines
      </Button>
      <Problem error={error} />
    </div>
  );
}
