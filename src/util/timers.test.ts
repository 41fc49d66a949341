import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { manualTimers } from "../../tests/support/manual-timers.ts";
import { manualClock } from "./clock.ts";
import { inTime, type Stop, systemTimers, TimeoutError, withDeadline } from "./timers.ts";

const forever = () => new Promise<never>(() => {});

function setup() {
  const clock = manualClock(0);
  return { clock, timers: manualTimers(clock) };
}

describe("systemTimers", () => {
  test("sleeps, runs soon, runs after", async () => {
    const order: string[] = [];
    systemTimers.soon(() => order.push("soon"));
    order.push("now");
    const cancel = systemTimers.after(1, () => order.push("cancelled"));
    systemTimers.after(5, () => order.push("after"));
    cancel();
    await systemTimers.sleep(30);
    expect(order).toEqual(["now", "soon", "after"]);
  });

  test("an aborted sleep rejects with the reason and leaves no timer and no listener behind", async () => {
    const stop = new AbortController();
    await systemTimers.sleep(1, stop.signal);
    expect(getEventListeners(stop.signal, "abort")).toEqual([]);
    const sleep = systemTimers.sleep(60_000, stop.signal);
    stop.abort(new Error("enough"));
    await expect(sleep).rejects.toThrow("enough");
    await expect(systemTimers.sleep(1, stop.signal)).rejects.toThrow("enough");
  });

  test("waits longer than Node can in one go", () => {
    vi.useFakeTimers();
    try {
      const month = 31 * 24 * 3_600_000;
      const fired: string[] = [];
      systemTimers.after(month, () => fired.push("month"));
      const cancel = systemTimers.after(month, () => fired.push("cancelled"));
      systemTimers.after(Number.POSITIVE_INFINITY, () => fired.push("never"));
      vi.advanceTimersByTime(2 ** 31);
      expect(fired).toEqual([]);
      cancel();
      vi.advanceTimersByTime(month - 2 ** 31 - 1);
      expect(fired).toEqual([]);
      vi.advanceTimersByTime(1);
      expect(fired).toEqual(["month"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("refuses a wait that is not a number instead of not waiting", async () => {
    expect(() => systemTimers.after(Number.NaN, () => {})).toThrow(RangeError);
    await expect(systemTimers.sleep(Number.NaN)).rejects.toThrow(RangeError);
  });
});

describe("withDeadline", () => {
  test("gives the result, and nothing is left open", async () => {
    const { timers } = setup();
    await expect(withDeadline(async () => 7, 100, timers)).resolves.toBe(7);
    expect(timers.open).toBe(0);
  });

  test("gives the error, thrown or rejected", async () => {
    const { timers } = setup();
    const rejects = withDeadline(async () => Promise.reject(new Error("a")), 100, timers);
    await expect(rejects).rejects.toThrow("a");
    const throws = withDeadline(
      () => {
        throw new Error("b");
      },
      100,
      timers,
    );
    await expect(throws).rejects.toThrow("b");
    expect(timers.open).toBe(0);
  });

  test("rejects with a TimeoutError and aborts the signal when the time is over", async () => {
    const { timers } = setup();
    let given: AbortSignal | undefined;
    const work = withDeadline(
      (signal) => {
        given = signal;
        return forever();
      },
      100,
      timers,
    );
    const answer = expect(work).rejects.toMatchObject({ name: "TimeoutError", ms: 100 });
    await timers.advance(99);
    expect(given?.aborted).toBe(false);
    await timers.advance(1);
    await answer;
    expect(given?.reason).toBeInstanceOf(TimeoutError);
    expect(timers.open).toBe(0);
  });

  test("drops a late answer, also a late error", async () => {
    const { timers } = setup();
    const late = Promise.withResolvers<never>();
    const work = withDeadline(() => late.promise, 10, timers);
    const answer = expect(work).rejects.toThrow(TimeoutError);
    await timers.advance(10);
    await answer;
    late.reject(new Error("too late"));
    await timers.advance(1);
  });

  test("passes an outer abort on, with its reason", async () => {
    const { timers } = setup();
    const outer = new AbortController();
    let given: AbortSignal | undefined;
    const work = withDeadline(
      (signal) => {
        given = signal;
        return forever();
      },
      100,
      timers,
      outer.signal,
    );
    outer.abort(new Error("stop"));
    await expect(work).rejects.toThrow("stop");
    expect(given?.reason).toMatchObject({ message: "stop" });
    expect(timers.open).toBe(0);
  });

  test("notices an abort that comes out of the work itself", async () => {
    const { timers } = setup();
    const outer = new AbortController();
    const work = withDeadline(
      () => {
        outer.abort(new Error("from inside"));
        return forever();
      },
      100,
      timers,
      outer.signal,
    );
    await expect(work).rejects.toThrow("from inside");
    expect(timers.open).toBe(0);
  });

  test("does not start when it was aborted before", async () => {
    const { timers } = setup();
    const work = vi.fn(forever);
    const aborted = AbortSignal.abort(new Error("before"));
    await expect(withDeadline(work, 100, timers, aborted)).rejects.toThrow("before");
    expect(work).not.toHaveBeenCalled();
  });

  test("a result leaves no listener behind and does not abort the signal afterwards", async () => {
    const { timers } = setup();
    const outer = new AbortController();
    let given: AbortSignal | undefined;
    await withDeadline(
      async (signal) => {
        given = signal;
      },
      100,
      timers,
      outer.signal,
    );
    expect(getEventListeners(outer.signal, "abort")).toEqual([]);
    outer.abort();
    await timers.advance(1_000);
    expect(given?.aborted).toBe(false);
  });

  test("a deadline that is not a number gives up instead of waiting for ever", async () => {
    await expect(withDeadline(forever, Number.NaN, systemTimers)).rejects.toThrow(RangeError);
  });

  test("works with the real timers", async () => {
    await expect(withDeadline(forever, 5, systemTimers)).rejects.toThrow(TimeoutError);
  });
});

describe("inTime", () => {
  test("a synchronous answer is returned synchronously, and a synchronous throw is thrown", () => {
    const { timers } = setup();
    expect(inTime(() => 7, 10, timers)).toBe(7);
    const broken = () => {
      throw new Error("broken");
    };
    expect(() => inTime(broken, 10, timers)).toThrow("broken");
    const enough = AbortSignal.abort(new Error("enough"));
    expect(() => inTime(() => 7, 10, timers, enough)).toThrow("enough");
  });

  /** Work that is given up after a while, and hands what it got to `keep`. */
  async function givenUp(keep: (stop: Stop) => void): Promise<void> {
    const { timers } = setup();
    const work = (stop: Stop) => {
      keep(stop);
      return forever();
    };
    const refused = expect(inTime(work, 10, timers)).rejects.toThrow(TimeoutError);
    await timers.advance(10);
    await refused;
  }

  test("a copy of the passed object has the signal as well", async () => {
    let copy: Partial<Stop> = {};
    await givenUp((stop) => {
      copy = { ...stop };
    });
    expect(copy.signal?.aborted).toBe(true);
  });

  test("a signal first read after the abort is aborted", async () => {
    let kept: Stop | undefined;
    await givenUp((stop) => {
      kept = stop;
    });
    expect(kept?.signal.aborted).toBe(true);
    expect(kept?.signal).toBe(kept?.signal);
  });

  test("a watch can give up, and is ended however it ends", async () => {
    const { timers } = setup();
    const ended: string[] = [];
    const watching = (name: string, reason?: Error) => (giveUp: (reason: unknown) => void) => {
      if (reason !== undefined) timers.after(5, () => giveUp(reason));
      return () => ended.push(name);
    };
    let signal: AbortSignal | undefined;
    const lost = inTime(
      (stop) => {
        ({ signal } = stop);
        return forever();
      },
      10,
      timers,
      undefined,
      watching("lost", new Error("the lease was lost")),
    );
    const refused = expect(lost).rejects.toThrow("the lease was lost");
    await timers.advance(5);
    await refused;
    expect(signal?.reason).toEqual(new Error("the lease was lost"));
    await inTime(async () => 7, 10, timers, undefined, watching("answered"));
    const failing = async () => Promise.reject(new Error("no"));
    await expect(inTime(failing, 10, timers, undefined, watching("failed"))).rejects.toThrow("no");
    expect(ended).toEqual(["lost", "answered", "failed"]);
    expect(timers.open).toBe(0);
  });
});
