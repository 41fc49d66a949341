/** Names from the top down, joined by dots or as an array; `*` stands for any name or index. */
export type SecretPath = string | readonly string[];

/** Where a walk stands among the secret places. `step` is undefined where nothing below can be secret. */
export interface PathTree {
  readonly isEnd: boolean;
  step(name: string): PathTree | undefined;
}

/** All paths in one tree, so that a walk compares each name once, however many paths there are. */
export function secretPathTree(paths: readonly SecretPath[]): PathTree | undefined {
  if (paths.length === 0) return undefined;
  const root: Node = { isEnd: false, named: new Map(), any: undefined };
  for (const path of paths) {
    let node = root;
    for (const name of typeof path === "string" ? path.split(".") : path) node = child(node, name);
    node.isEnd = true;
  }
  return treeOf([root]);
}

interface Node {
  isEnd: boolean;
  readonly named: Map<string, Node>;
  any: Node | undefined;
}

function child(node: Node, name: string): Node {
  const known = name === "*" ? node.any : node.named.get(name);
  if (known !== undefined) return known;
  const added: Node = { isEnd: false, named: new Map(), any: undefined };
  if (name === "*") node.any = added;
  else node.named.set(name, added);
  return added;
}

/** A star and a name can both fit, so a place is a set of nodes. Each answer is kept: names not in a path share one. */
function treeOf(nodes: readonly Node[]): PathTree {
  const names = new Set(nodes.flatMap((node) => [...node.named.keys()]));
  const steps = new Map<string, PathTree | undefined>();
  return {
    isEnd: nodes.some((node) => node.isEnd),
    step(name) {
      const wanted = names.has(name) ? name : "*";
      if (!steps.has(wanted)) {
        const next = nodes.flatMap((node) => [node.named.get(wanted), node.any]);
        const found = next.filter((node) => node !== undefined);
        steps.set(wanted, found.length === 0 ? undefined : treeOf(found));
      }
      return steps.get(wanted);
    },
  };
}
