import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import type { AnchorSink } from "../audit/anchor.ts";
import { fileAnchorSink } from "../audit/anchor-file.ts";
import { createAnchorer } from "../audit/anchorer.ts";
import { type AnchorSigner, createSigner, generateSigningKey } from "../audit/signing-key.ts";
import type { VerifyOptions } from "../audit/verify.ts";
import type { Store } from "../store/store.ts";
import { PRIVATE_FILE } from "../util/files.ts";
import type { StateFiles } from "./state-folder.ts";

/** Where anchors are kept instead of the state folder, preferably on another machine, and who signs them. */
export interface OwnAnchors {
  readonly sink: AnchorSink;
  readonly signer: AnchorSigner;
  /** Keys that signed older anchors in the sink. */
  readonly publicKeys?: readonly string[];
}

export interface Anchoring {
  /** For verification: the current end is anchored first. */
  readonly audit: Pick<VerifyOptions, "anchors" | "publicKeys">;
  close(): Promise<void>;
}

/** Anchors every trail of the store from now on. The signing key is created on first use and is never in the store. */
export function startAnchoring(
  store: Store,
  place: StateFiles | OwnAnchors,
  onProblem: (error: unknown) => void,
): Anchoring {
  const own = "sink" in place ? place : inFolder(place);
  const { sink, signer, publicKeys = [] } = own;
  const anchorer = createAnchorer({
    store,
    sink,
    signer,
    publicKeys,
    onProblem: ({ code, message, cause }) => onProblem(new Error(`${code}: ${message}`, { cause })),
  });
  return {
    audit: {
      publicKeys: [signer.publicKey, ...publicKeys],
      anchors: {
        async *[Symbol.asyncIterator]() {
          // A failure was reported to onProblem; the anchors that are there still count.
          await anchorer.flush().catch(() => {});
          yield* sink.read();
        },
      },
    },
    close: () => anchorer.close(),
  };
}

function inFolder({ anchorFile, keyFile, publicKeyFile }: StateFiles): OwnAnchors {
  const signer = createSigner({ privateKey: privateKeyIn(keyFile) });
  // For verification elsewhere, which needs no private key.
  writeFileSync(publicKeyFile, signer.publicKey, { mode: PRIVATE_FILE });
  return { sink: fileAnchorSink({ file: anchorFile }), signer };
}

function privateKeyIn(file: string): string {
  try {
    writeFileSync(file, generateSigningKey().privateKey, { mode: PRIVATE_FILE, flag: "wx" });
  } catch (error) {
    // Another process was first, or this is a later start: the existing key is used.
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    chmodSync(file, PRIVATE_FILE);
  }
  return readFileSync(file, "utf8");
}

/** The anchors that a local server wrote, for verification; undefined if there are none. */
export function anchorsIn({
  anchorFile,
  publicKeyFile,
}: StateFiles): Anchoring["audit"] | undefined {
  if (!existsSync(anchorFile)) return undefined;
  return {
    anchors: fileAnchorSink({ file: anchorFile }).read(),
    publicKeys: existsSync(publicKeyFile) ? [readFileSync(publicKeyFile, "utf8")] : [],
  };
}
