import { useEffect, useState } from "react";

/** Long enough to see that something else is on the screen than a moment ago. */
const SEEN_MS = 500;

/** A key that is pressed twice must not hit the question that took the place of the one before. */
export function useIsSeen(): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSeen(true), SEEN_MS);
    return () => clearTimeout(timer);
  }, []);
  return isSeen;
}
