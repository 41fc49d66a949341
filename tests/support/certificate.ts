// A self-signed certificate for loopback, made here so that no key is part of the repository.

import { createHash, generateKeyPairSync, sign, X509Certificate } from "node:crypto";

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

/** `name` tells two certificates of one test apart. It is good for a day, for localhost and 127.0.0.1. */
export function testCertificate(name: string): TestCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const publicDer = publicKey.export({ type: "spki", format: "der" });
  const algorithm = sequence(oid("1.2.840.10045.4.3.2"));
  const subject = sequence(set(sequence(oid("2.5.4.3"), der(0x0c, Buffer.from(name)))));
  const names = sequence(
    der(0x82, Buffer.from("localhost")),
    der(0x87, Buffer.from([127, 0, 0, 1])),
  );
  const extensions = der(
    0xa3,
    sequence(sequence(oid("2.5.29.17"), der(0x04, names)), isAuthority()),
  );
  const now = Date.now();
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(
      0x02,
      Buffer.concat([
        Buffer.from([1]),
        createHash("sha256").update(publicDer).digest().subarray(0, 8),
      ]),
    ),
    algorithm,
    subject,
    sequence(time(now - 3_600_000), time(now + 86_400_000)),
    subject,
    publicDer,
    extensions,
  );
  const signature = sign("sha256", body, privateKey);
  const whole = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  return {
    cert: new X509Certificate(whole).toString(),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function der(tag: number, content: Buffer): Buffer {
  const size = content.length;
  const length =
    size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, Math.floor(size / 256), size % 256];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function set(...parts: readonly Buffer[]): Buffer {
  return der(0x31, Buffer.concat(parts));
}

function isAuthority(): Buffer {
  const yes = der(0x01, Buffer.from([0xff]));
  return sequence(oid("2.5.29.19"), yes, der(0x04, sequence(yes)));
}

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = rest.flatMap((part) => {
    const digits = [part % 128];
    for (let left = Math.floor(part / 128); left > 0; left = Math.floor(left / 128)) {
      digits.unshift((left % 128) + 128);
    }
    return digits;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function time(at: number): Buffer {
  const text = new Date(at)
    .toISOString()
    .replaceAll(/[-:T]|\.\d+/g, "")
    .slice(2);
  return der(0x17, Buffer.from(text));
}
