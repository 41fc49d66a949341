/** Address ranges outside the public internet, from the special-purpose registries (IANA). */
// biome-ignore format: a table
const PRIVATE_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8], ["10.0.0.0", 8], ["100.64.0.0", 10], ["127.0.0.0", 8], ["169.254.0.0", 16], ["172.16.0.0", 12],
  ["192.0.0.0", 24], ["192.0.2.0", 24], ["192.88.99.0", 24], ["192.168.0.0", 16], ["198.18.0.0", 15],
  ["198.51.100.0", 24], ["203.0.113.0", 24], ["224.0.0.0", 4], ["240.0.0.0", 4],
];

/** Public IPv6 addresses are all in 2000::/3; these parts of it are excluded, or embed an IPv4 address. */
// biome-ignore format: a table
const PRIVATE_V6: readonly (readonly [string, number])[] = [
  ["2001::", 23], ["2001:db8::", 32], ["3fff::", 20],
];

/** True for every address that a fetch must not reach. The text must be in the form of the URL parser. */
export function isPrivateAddress(address: string): boolean {
  const v4 = parseV4(address);
  if (v4 !== undefined) return isPrivateV4(v4);
  const groups = parseV6(address);
  if (groups === undefined) return true;
  const embedded = embeddedV4(groups);
  if (embedded !== undefined) return isPrivateV4(embedded);
  const isGlobal = ((groups[0] ?? 0) & 0xe000) === 0x2000;
  return !isGlobal || PRIVATE_V6.some(([range, bits]) => sharesBits(groups, range, bits));
}

function isPrivateV4(value: number): boolean {
  return PRIVATE_V4.some(
    ([range, bits]) => value >>> (32 - bits) === (parseV4(range) ?? 0) >>> (32 - bits),
  );
}

/** The IPv4 address inside mapped, compatible, translated (64:ff9b::/96) and 6to4 (2002::/16) addresses. */
function embeddedV4(groups: readonly number[]): number | undefined {
  const [first = 0, second = 0, third = 0] = groups;
  if (first === 0x2002) return joined(second, third);
  const isZero = (from: number, to: number) => groups.slice(from, to).every((group) => group === 0);
  const low = joined(groups[6] ?? 0, groups[7] ?? 0);
  if (isZero(0, 5) && (groups[5] === 0xffff || groups[5] === 0)) return low;
  if (isZero(0, 4) && groups[4] === 0xffff && groups[5] === 0) return low;
  return first === 0x64 && second === 0xff9b && isZero(2, 6) ? low : undefined;
}

function joined(high: number, low: number): number {
  return ((high << 16) | low) >>> 0;
}

function parseV4(text: string): number | undefined {
  const parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number);
  if (parts === undefined || parts.some((part) => part > 255)) return undefined;
  return parts.reduce((value, part) => value * 256 + part, 0);
}

/** The eight groups of a compressed address; undefined for other text. */
function parseV6(text: string): readonly number[] | undefined {
  const [head = "", tail, ...more] = text.split("::");
  if (more.length > 0) return undefined;
  const groupsOf = (part: string) => (part === "" ? [] : part.split(":"));
  const front = groupsOf(head);
  const back = groupsOf(tail ?? "");
  const missing = 8 - front.length - back.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...front, ...Array<string>(missing).fill("0"), ...back];
  if (!groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) return undefined;
  return groups.map((group) => Number.parseInt(group, 16));
}

function sharesBits(groups: readonly number[], range: string, bits: number): boolean {
  const wanted = parseV6(range) ?? [];
  return groups.every((group, index) => {
    const here = Math.min(16, Math.max(0, bits - index * 16));
    const mask = (0xffff << (16 - here)) & 0xffff;
    return (group & mask) === ((wanted[index] ?? 0) & mask);
  });
}
