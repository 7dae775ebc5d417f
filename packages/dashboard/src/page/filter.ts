/** The reader's filter: rows and cards that hold all of its words. */

/** What is hidden when it does not match: rows of tables and cards of nodes. */
const filtered = "tbody tr, article";

/**
 * Follows the field `filter`: `/` leads there, Escape empties it. Returns the function that hides what does not match, to be
 * called when the page has changed.
 */
export function filterOf(page: Document): () => void {
  const field = page.getElementById("filter") as HTMLInputElement | null;
  const count = page.getElementById("filter-count");
  if (field === null || count === null) throw new Error("the page has no filter");
  const apply = () => {
    const matches = matcher(field.value);
    const elements = [...page.querySelectorAll<HTMLElement>(filtered)];
    for (const element of elements) element.hidden = !matches(element.textContent ?? "");
    const shown = elements.filter(({ hidden }) => !hidden).length;
    const text = field.value.trim() === "" ? "" : `${shown} of ${elements.length} match`;
    if (count.textContent !== text) count.textContent = text;
  };
  field.addEventListener("input", apply);
  page.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== field && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === "Escape" && event.target === field) {
      field.value = "";
      apply();
      field.blur();
    }
  });
  return apply;
}

/** Whether a text holds each word, in any case and any order. */
export function matcher(filter: string): (text: string) => boolean {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}
