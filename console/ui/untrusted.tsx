import { memo } from "react";
import { type Piece, piecesOf } from "sallyport/client";

interface Props {
  readonly text: string;
  readonly mono?: boolean;
  /** On one line: line breaks are drawn as a sign. */
  readonly inline?: boolean;
  readonly className?: string;
}

/** Untrusted text: text nodes only, isolated, with everything hidden made visible. */
export const Untrusted = memo(function Untrusted({
  text,
  mono = false,
  inline = false,
  className = "",
}: Props) {
  return (
    <bdi
      dir="ltr"
      className={`untrusted ${mono ? "font-mono" : ""} ${className}`}
      data-untrusted=""
    >
      {piecesOf(text).map((piece, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text have no other identity
        <PieceView key={index} piece={piece} inline={inline} />
      ))}
    </bdi>
  );
});

export function PieceView({ piece, inline }: { piece: Piece; inline: boolean }) {
  const { kind, raw } = piece;
  if (kind === "text") return raw;
  if (kind === "newline") {
    return (
      <>
        <span data-raw={codesOf(raw)} className="text-muted select-none">
          ↵
        </span>
        {inline ? " " : <br />}
      </>
    );
  }
  if (kind === "twin") {
    return (
      <span data-raw={codesOf(raw)} title={piece.why}>
        {raw}
        <span className="mark-odd">{piece.label}</span>
      </span>
    );
  }
  return (
    <span data-raw={codesOf(raw)} title={piece.why} className="mark-odd">
      {piece.label}
    </span>
  );
}

/** The numbers of the characters, so that the text can be put together again from the page. */
function codesOf(raw: string): string {
  const all = Array.from(raw, (sign) => (sign.codePointAt(0) ?? 0).toString(16));
  const first = all[0] ?? "";
  // Gaps are long and one character repeated; words are not.
  const isGap = all.length > 8 && all.every((code) => code === first);
  return isGap ? `${first}*${all.length}` : all.join(" ");
}
