import type { ButtonHTMLAttributes, ReactNode } from "react";

const TONES = {
  plain: "border-strong bg-panel text-ink hover:bg-raised",
  primary: "border-accent bg-accent text-on-accent hover:opacity-90",
  danger: "border-danger bg-panel text-danger hover:bg-danger-soft",
  quiet: "border-transparent text-accent hover:bg-raised",
} as const;

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly tone?: keyof typeof TONES;
  /** The key that does the same. */
  readonly hotkey?: string;
  /** Focused when its dialog opens. */
  readonly "data-focus"?: "";
  readonly children: ReactNode;
}

export function Button({ tone = "plain", hotkey, children, className = "", ...rest }: Props) {
  return (
    <button
      type="button"
      className={`inline-flex min-h-8 items-center gap-1.5 rounded-md border px-3 py-1 text-sm font-medium disabled:opacity-55 ${TONES[tone]} ${className}`}
      {...(hotkey === undefined ? {} : { "aria-keyshortcuts": hotkey })}
      {...rest}
    >
      {children}
      {hotkey !== undefined && (
        <span aria-hidden="true" className="hidden lg:inline">
          <kbd>{hotkey}</kbd>
        </span>
      )}
    </button>
  );
}
