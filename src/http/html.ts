import { sha256Base64 } from "./security-headers.ts";

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:32rem;margin:12vh auto;padding:0 1.25rem}
button,a.button{display:inline-block;font:inherit;padding:.6rem 1.4rem;border-radius:.5rem;border:1px solid;cursor:pointer;text-decoration:none;color:inherit;background:none}`;

/** The hash of the only style on our own pages, for the policy that they are sent with. */
export const STYLE_HASH = `'sha256-${sha256Base64(STYLE)}'`;

/** A page without scripts. `body` is HTML and must be escaped where it is not ours. */
export function htmlPage(title: string, body: string, refresh = ""): string {
  const move =
    refresh === "" ? "" : `<meta http-equiv="refresh" content="0;url=${escapeHtml(refresh)}">`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${move}<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main><h1>${escapeHtml(title)}</h1>${body}</main></body></html>`;
}
