import { useParams } from "@tanstack/react-router";
import { ItemView } from "./item-view.tsx";

/** One item on a page of its own, for narrow screens and for links. */
export function ItemPage() {
  const { id = "" } = useParams({ strict: false });
  return (
    <div className="mx-auto max-w-4xl">
      <ItemView id={id} />
    </div>
  );
}
