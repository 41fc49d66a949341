/** One after the other for the same name, at the same time for different ones. An empty name waits for nobody. */
export type InTurn = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>;

export function inTurn(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return async (name, work) => {
    if (name === "") return work();
    const before = last.get(name);
    const own = (async () => {
      // How the one before ended is told to whoever asked for it.
      await before?.catch(() => {});
      return work();
    })();
    last.set(name, own);
    try {
      return await own;
    } finally {
      if (last.get(name) === own) last.delete(name);
    }
  };
}
