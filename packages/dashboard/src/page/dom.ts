/** Making elements and bringing a list of them up to date, without markup from strings. */

/** A child: an element, a text, or nothing. */
export type Child = Node | string | undefined;

/** Makes an element; attributes that are undefined are left out. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | undefined>> = {},
  ...children: readonly Child[]
): HTMLElement {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** An entry of a list: `key` says which it is, `value` what it shows. */
export interface Keyed<T> {
  readonly key: string;
  readonly value: T;
}

interface Shown {
  readonly text: string;
  readonly element: Element;
}

/** Keeps the children of `parent` equal to a list; what is new or changed is marked `fresh`. */
export function keyedChildren<T>(parent: Element, make: (value: T) => Element) {
  let shown = new Map<string, Shown>();
  let isFirst = true;
  return (entries: readonly Keyed<T>[]): void => {
    const next = new Map<string, Shown>();
    for (const { key, value } of entries) {
      const text = JSON.stringify(value);
      const before = shown.get(key);
      if (before?.text === text) {
        next.set(key, before);
        continue;
      }
      const made = make(value);
      if (!isFirst) made.classList.add("fresh");
      next.set(key, { text, element: made });
    }
    shown = next;
    isFirst = false;
    place(
      parent,
      [...next.values()].map((entry) => entry.element),
    );
  };
}

/** Moves as little as possible: an element that stays where it is keeps focus, selection and animation. */
function place(parent: Element, wanted: readonly Element[]): void {
  const keep = new Set(wanted);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  for (const [index, child] of wanted.entries()) {
    const there = parent.children[index];
    if (there !== child) parent.insertBefore(child, there ?? null);
  }
}
