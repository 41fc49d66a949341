import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import type { Me } from "./client.ts";
import { setKeysOn, useKeysOn } from "./keys.ts";
import { OwnLink } from "./own-link.tsx";
import { PAGES } from "./pages.ts";

const KEYS: readonly (readonly [string, string])[] = [
  ["j", "next"],
  ["k", "the one before"],
  ["Enter", "open"],
  ["a", "approve what is shown; opens what is folded first"],
  ["r", "reject, with a reason"],
  ["e", "edit the input"],
  ["b", "ask the agent"],
  ["h", "reassign"],
  ["1–9", "choose an answer, while a question with choices is open"],
  ["x", "select for a joint review"],
  ["X", "select all that are reversible"],
  ["p", "pause or resume"],
  ["z", "undo what just ran, or what is shown"],
  ["i", "show the input as it would be sent"],
  [".", "show the proof"],
  ["/", "search"],
  ["?", "this help"],
];

interface Props {
  readonly me: Me | undefined;
  readonly onClose: () => void;
  readonly onSignOut: () => Promise<void>;
}

export function Help({ me, onClose, onSignOut }: Props) {
  const isOn = useKeysOn();
  return (
    <Dialog title="Keyboard and account" onClose={onClose}>
      <table className="w-full">
        <thead className="sr-only">
          <tr>
            <th>key</th>
            <th>what it does</th>
          </tr>
        </thead>
        <tbody>
          {[...KEYS, ...PAGES.map(({ key, name }) => [key, `page: ${name}`] as const)].map(
            ([key, what]) => (
              <tr key={key}>
                <td className="w-16 py-0.5">
                  <kbd>{key}</kbd>
                </td>
                <td>{what}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
      <label className="mt-3 flex items-center gap-2">
        <input
          type="checkbox"
          checked={isOn}
          onChange={() => setKeysOn(!isOn)}
          className="size-4"
        />
        Single letters are commands
      </label>
      {me !== undefined && (
        <p className="text-muted mt-3">
          Signed in as <strong className="text-ink">{me.subject}</strong> ({me.roles.join(", ")}) in{" "}
          {me.tenant}.
        </p>
      )}
      <OwnLink />
      <div className="mt-4 flex justify-between gap-2">
        <Button tone="danger" onClick={() => onSignOut()}>
          Sign out
        </Button>
        <Button tone="primary" onClick={onClose}>
          Close
        </Button>
      </div>
    </Dialog>
  );
}
