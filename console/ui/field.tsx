import type { ReactNode } from "react";

/** How every field of a form looks. */
export const FIELD = "border-strong bg-page w-full rounded-md border px-2 py-1";

interface Props {
  readonly id: string;
  readonly label: string;
  readonly hint?: ReactNode;
  readonly children: ReactNode;
}

export function Field({ id, label, hint, children }: Props) {
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium">
        {label}
      </label>
      {children}
      {hint !== undefined && <p className="text-muted mt-1 text-xs">{hint}</p>}
    </div>
  );
}
