import { useId, useState } from "react";
import { Button } from "../ui/button.tsx";
import { FIELD } from "../ui/field.tsx";
import { queryClient } from "./client.ts";
import { keepPageKey } from "./page-key.ts";

/**
 * Signs in with a pasted link, without leaving the page: what was typed and opened stays. No form of its own, because it may
 * appear inside one.
 */
export function SignInAgain({ onDone }: { readonly onDone?: () => void }) {
  const id = useId();
  const [link, setLink] = useState("");
  const [state, setState] = useState<"asking" | "busy" | "refused" | "done">("asking");
  async function submit(): Promise<void> {
    setState("busy");
    const isIn = await signInHere(link).catch(() => false);
    setState(isIn ? "done" : "refused");
    if (!isIn) return;
    onDone?.();
    await queryClient.invalidateQueries();
  }
  if (state === "done") return <p role="status">You are signed in. Try again now.</p>;
  return (
    <div className="text-ink mt-2 space-y-2">
      <label htmlFor={id} className="block font-medium">
        Paste a sign-in link
      </label>
      <div className="flex flex-wrap gap-2">
        <input
          id={id}
          value={link}
          autoComplete="off"
          onChange={({ target }) => setLink(target.value)}
          className={`${FIELD} max-w-md`}
        />
        <Button disabled={state === "busy" || link === ""} onClick={submit}>
          Sign in
        </Button>
      </div>
      {state === "refused" && (
        <p role="alert">The link was already used, has expired, or belongs to another server.</p>
      )}
      <p>
        Or{" "}
        <a href="/signin" target="_blank" rel="noreferrer">
          sign in in another tab
        </a>{" "}
        and come back: this page continues with the new sign-in.
      </p>
    </div>
  );
}

/** False when the server refuses the link. */
async function signInHere(text: string): Promise<boolean> {
  const link = URL.parse(text.trim())?.searchParams.get("link") ?? "";
  const response = await fetch("/signin", {
    method: "POST",
    headers: { Accept: "application/json" },
    body: new URLSearchParams({ link }),
  });
  if (!response.ok) return false;
  const { key } = (await response.json()) as { key: string };
  keepPageKey(key);
  return true;
}
