import { useEffect, useRef, useSyncExternalStore } from "react";

// Single letters as commands. They can be switched off (WCAG 2.1.4): people who speak to
// their computer would set them off by talking.

export type Keys = Readonly<Record<string, (() => void) | undefined>>;

const SETTING = "sallyport.keys";
const listeners = new Set<() => void>();
/** The innermost handler that knows a key gets it. */
const stack: { readonly keys: () => Keys }[] = [];

export function areKeysOn(): boolean {
  return localStorage.getItem(SETTING) !== "off";
}

export function setKeysOn(on: boolean): void {
  if (on) localStorage.removeItem(SETTING);
  else localStorage.setItem(SETTING, "off");
  for (const listener of listeners) listener();
}

export function useKeysOn(): boolean {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, areKeysOn);
}

export function useKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const layer = { keys: () => latest.current };
    stack.push(layer);
    return () => {
      stack.splice(stack.indexOf(layer), 1);
    };
  }, []);
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target instanceof HTMLElement) leave(event.target);
    if (event.repeat && !["j", "k", "ArrowDown", "ArrowUp"].includes(event.key)) return;
    if (isBusy(event.target, event.key)) return;
    if (event.key.length === 1 && !areKeysOn()) return;
    const handler = stack
      .toReversed()
      .map(({ keys }) => keys()[event.key])
      .find((found) => found !== undefined);
    if (handler === undefined) return;
    event.preventDefault();
    handler();
  });
}

/** Back from a field to the commands. */
function leave(target: HTMLElement): void {
  if (target.closest("dialog") === null && target.matches("input, select, textarea")) target.blur();
}

/** Where typing means something else already. */
function isBusy(target: EventTarget | null, key: string): boolean {
  if (document.querySelector("dialog[open]") !== null) return true;
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.matches("input:not([type=checkbox]), textarea, select")) {
    return true;
  }
  return ["Enter", " "].includes(key) && target.matches("a, button, summary, input, [role=button]");
}
