import { hash } from "node:crypto";

export function sha256Base64(text: string): string {
  return hash("sha256", text, "base64");
}

/**
 * For pages: only our own scripts and styles, no inline code, no plugins, no frames around us, and the browser refuses to turn
 * text into code (Trusted Types). `styles` and `scripts` are hashes of those that stand in a page.
 */
export function contentSecurityPolicy(
  styles: readonly string[] = [],
  scripts: readonly string[] = [],
): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${scripts.join(" ")}`.trim(),
    `style-src 'self' ${styles.join(" ")}`.trim(),
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

/** For every answer. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  // Not "no-referrer": with it browsers send `Origin: null` with forms, and nobody could use a sign-in link.
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
};

/** What is no page can do nothing. */
export const NO_PAGE_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox";
