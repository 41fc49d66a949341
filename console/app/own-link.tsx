import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { FIELD } from "../ui/field.tsx";
import { Problem } from "../ui/panel.tsx";
import { client } from "./client.ts";

/** A link for yourself: to decide from the command line, or to sign in on another device. */
export function OwnLink() {
  const [link, setLink] = useState("");
  const [error, setError] = useState<unknown>(null);
  async function make(): Promise<void> {
    setError(null);
    try {
      setLink((await client.me.link()).link);
    } catch (problem) {
      setError(problem);
    }
  }
  return (
    <div className="mt-3 space-y-2">
      <Button onClick={make}>Make a sign-in link for the command line</Button>
      {link !== "" && (
        <label className="block">
          It signs you in once, within ten minutes. Do not share it.
          <input readOnly value={link} className={`${FIELD} mt-1 font-mono text-xs`} />
        </label>
      )}
      <Problem error={error} />
    </div>
  );
}
