import type { HttpContext } from "./route.ts";

/** A text that is made while it is sent; what breaks on the way cuts the answer off, so that nobody takes it for whole. */
export function streamed(
  context: HttpContext,
  contentType: string,
  lines: AsyncGenerator<string>,
  report: (error: unknown) => void,
): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await lines.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      } catch (error) {
        report(error);
        controller.error(error);
      }
    },
    async cancel() {
      await lines.return(undefined);
    },
  });
  return context.body(body, 200, { "Content-Type": contentType, "Cache-Control": "no-store" });
}
