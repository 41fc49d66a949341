import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./button.tsx";

interface Props {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly wide?: boolean;
}

/** The browser's own dialog: focus stays inside, Escape closes, the rest of the page is inert. */
export function Dialog({ title, onClose, children, wide = false }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const name = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // The browser focuses the first field or button; a dialog may want another one.
    dialog?.querySelector<HTMLElement>("[data-focus]")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={name}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      className={`border-line bg-panel text-ink m-auto max-h-[90vh] w-[calc(100vw-1.5rem)] overflow-auto rounded-lg border p-4 shadow-xl ${wide ? "max-w-4xl" : "max-w-lg"}`}
    >
      <h2 id={name} className="mb-3 text-base">
        {title}
      </h2>
      {children}
    </dialog>
  );
}

/** The footer of every dialog: the action last, Cancel beside it. */
export function DialogActions({
  onCancel,
  cancel = "Cancel",
  children,
}: {
  readonly onCancel: () => void;
  readonly cancel?: string;
  readonly children?: ReactNode;
}) {
  return (
    <div className="mt-3 flex flex-wrap justify-end gap-2">
      <Button onClick={onCancel}>{cancel}</Button>
      {children}
    </div>
  );
}
