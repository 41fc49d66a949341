import { useEffect } from "react";
import { onPageKey } from "./page-key.ts";
import { rememberPlace } from "./return-to.ts";
import { SignInAgain } from "./sign-in-again.tsx";

/** No session, or an expired one. Signing in, here or in another tab, shows the same page again. */
export function SignedOut() {
  useEffect(() => onPageKey(() => location.reload()), []);
  useEffect(rememberPlace, []);
  const isDecision = /^\/(?:inbox|decisions)\/./.test(location.pathname);
  return (
    <main className="mx-auto mt-[12vh] max-w-lg space-y-3 px-4">
      <h1>{isDecision ? "A decision waits for you" : "You are not signed in"}</h1>
      <p>
        {isDecision && "Sign in to see it; you come back to this page. "}
        Use the sign-in link that the server printed when it started (press Enter there for another
        one), or ask an admin to invite you. A link works once.
      </p>
      <SignInAgain onDone={() => location.reload()} />
    </main>
  );
}
