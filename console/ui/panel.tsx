import type { ReactNode } from "react";
import { SignInAgain } from "../app/sign-in-again.tsx";
import { toDisplayError } from "../app/words.ts";
import { Untrusted } from "./untrusted.tsx";

interface Props {
  readonly title?: ReactNode;
  readonly aside?: ReactNode;
  readonly tone?: "plain" | "quiet";
  readonly children: ReactNode;
}

/** One group of facts. */
export function Panel({ title, aside, tone = "plain", children }: Props) {
  return (
    <section
      className={`rounded-lg border ${tone === "plain" ? "border-line bg-panel" : "border-line border-dashed"}`}
    >
      {title !== undefined && (
        <div className="border-line flex flex-wrap items-center justify-between gap-2 border-b px-3 py-2">
          <h2>{title}</h2>
          {aside}
        </div>
      )}
      <div className="px-3 py-2.5">{children}</div>
    </section>
  );
}

export function Facts({ children }: { children: ReactNode }) {
  return (
    <dl className="grid grid-cols-[minmax(6rem,max-content)_minmax(0,1fr)] gap-x-4 gap-y-1.5">
      {children}
    </dl>
  );
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

export function Problem({ error }: { error: unknown }) {
  if (error === null || error === undefined) return null;
  const { title, hint, code, isOld } = toDisplayError(error);
  return (
    <div
      role="alert"
      className="border-danger bg-danger-soft text-danger my-2 rounded-md border px-3 py-2"
    >
      <strong>{title}.</strong> <Untrusted text={hint} />{" "}
      {code !== "" && <span className="font-mono text-xs">({code})</span>}
      {isOld && <SignInAgain />}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="text-muted px-3 py-6 text-center">{children}</p>;
}

export function PageTitle({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
      <h1>{title}</h1>
      {children}
    </div>
  );
}
