import type { Page } from "playwright-core";

/** Texts on the screen that look like JSON, except in blocks of code: people read sentences. */
export async function jsonOnScreen(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found: string[] = [];
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const text = node.textContent ?? "";
      const isCode =
        node.parentElement?.closest("code, pre, figure, textarea, script, style") != null;
      if (/[{[]"/.test(text) && !isCode) found.push(text.slice(0, 80));
    }
    return found;
  });
}
