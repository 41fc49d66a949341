import { useSyncExternalStore } from "react";

const wide = matchMedia("(min-width: 64rem)");

/** Space for the list and an item side by side. */
export function useIsWide(): boolean {
  return useSyncExternalStore(
    (listener) => {
      wide.addEventListener("change", listener);
      return () => wide.removeEventListener("change", listener);
    },
    () => wide.matches,
  );
}
