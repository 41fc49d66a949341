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
export function htmlPage(title: string, body: string, head = ""): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">${head}<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main><h1>${escapeHtml(title)}</h1>${body}</main></body></html>`;
}

/** Where the page key is kept in the browser: storage belongs to one origin, port included. The console reads the same name. */
const PAGE_KEY_NAME = "sallyport-key";

/** Always the same text, so that the content policy can name it by its hash. */
const KEEP_KEY = `const of=(n)=>document.querySelector('meta[name="'+n+'"]').content;localStorage.setItem("${PAGE_KEY_NAME}",of("sallyport-key"));location.replace(of("sallyport-next"));`;
export const KEEP_KEY_HASH = `'sha256-${sha256Base64(KEEP_KEY)}'`;

/** What a browser gets once after signing in: it keeps the key and goes on to `next`. */
export function signedInPage(key: string, next: string): string {
  const meta = (name: string, content: string) =>
    `<meta name="${name}" content="${escapeHtml(content)}">`;
  const head = meta("sallyport-key", key) + meta("sallyport-next", next);
  const body = `<p>You are signed in.</p><p><a href="${escapeHtml(next)}">Continue</a></p><noscript><p>The console needs JavaScript.</p></noscript><script>${KEEP_KEY}</script>`;
  return htmlPage("Signed in", body, head);
}
