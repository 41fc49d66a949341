import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { SallyportError } from "../model/errors.ts";
import { sha256Hex } from "../util/hash.ts";

/**
 * Signs anchors. Created by `createSigner`, or custom for a key in a hardware module or another process: the key must
 * never be in the database, and is safest where no tool runs. Shape: callback; the anchorer waits for the signature.
 */
export interface AnchorSigner {
  readonly keyId: string;
  /** SPKI PEM. */
  readonly publicKey: string;
  /** Ed25519 over the text as UTF-8, in base64url. */
  sign(text: string): string | Promise<string>;
}

/** Public keys by their id. */
export type PublicKeys = ReadonlyMap<string, KeyObject>;

interface SigningKey {
  /** PKCS #8 PEM. Store it outside the database, readable by the anchorer alone. */
  readonly privateKey: string;
  /** SPKI PEM. Give it to verifiers through another channel than the anchors. */
  readonly publicKey: string;
  readonly keyId: string;
}

export function generateSigningKey(): SigningKey {
  const pair = generateKeyPairSync("ed25519");
  return {
    privateKey: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicKey: pair.publicKey.export({ type: "spki", format: "pem" }).toString(),
    keyId: keyIdOf(pair.publicKey),
  };
}

/** Throws invalid_input when the key is not an Ed25519 private key. */
export function createSigner({
  privateKey,
}: {
  readonly privateKey: string | KeyObject;
}): AnchorSigner {
  const key = readKey("private key", () =>
    typeof privateKey === "string" ? createPrivateKey(privateKey) : privateKey,
  );
  if (key.type !== "private") throw wrongKey("private key");
  const publicKey = createPublicKey(key);
  return {
    keyId: keyIdOf(publicKey),
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    sign: (text) => sign(null, Buffer.from(text), key).toString("base64url"),
  };
}

/**
 * Throws invalid_input when one of them is not an Ed25519 public key. A private key is rejected: it should not be here.
 */
export function publicKeys(keys: readonly (string | KeyObject)[]): PublicKeys {
  const known = new Map<string, KeyObject>();
  for (const given of keys) {
    if (typeof given === "string" && given.includes("PRIVATE")) throw wrongKey("public key");
    const key = readKey("public key", () =>
      typeof given === "string" ? createPublicKey(given) : given,
    );
    if (key.type !== "public") throw wrongKey("public key");
    known.set(keyIdOf(key), key);
  }
  return known;
}

export function isSignedBy(key: KeyObject, text: string, sig: string): boolean {
  const bytes = Buffer.from(sig, "base64url");
  // One signature has one spelling; Node's decoder also accepts others.
  if (bytes.length !== 64 || bytes.toString("base64url") !== sig) return false;
  return verify(null, Buffer.from(text), key, bytes);
}

/** The first 128 bits of the hash of the public key, enough to distinguish keys; the signature is the proof. */
function keyIdOf(publicKey: KeyObject): string {
  const der = publicKey.export({ type: "spki", format: "der" });
  return `ed25519:${sha256Hex(der).slice(0, 32)}`;
}

function readKey(what: string, read: () => KeyObject): KeyObject {
  try {
    const key = read();
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // Not passed on: the cause can repeat parts of the key.
  }
  throw wrongKey(what);
}

function wrongKey(what: string): SallyportError {
  const hint = `Give an Ed25519 ${what} as PEM, as generateSigningKey makes it.`;
  return new SallyportError("invalid_input", { what, hint });
}
