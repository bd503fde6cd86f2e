/** Returns an element of the page by its id. */
export const byId = <T extends Element = HTMLElement>(id: string): T => {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element "${id}".`);
  return element as unknown as T;
};

type Child = Node | string;

/** Returns a new HTML element. */
export const html = <K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

const SVG = 'http://www.w3.org/2000/svg';

/** Returns a new SVG element. */
export const svg = <K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string | number>> = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] => {
  const element = document.createElementNS(SVG, name);
  set(element, attributes);
  element.append(...children);
  return element;
};

/** Sets those attributes of an element that differ. */
export const set = (element: Element, attributes: Readonly<Record<string, string | number>>): void => {
  for (const [key, value] of Object.entries(attributes)) {
    const text = typeof value === 'number' ? String(Math.round(value * 10) / 10) : value;
    if (element.getAttribute(key) !== text) element.setAttribute(key, text);
  }
};

/** Sets the text of an element if it differs. */
export const write = (element: Element, text: string): void => {
  if (element.textContent !== text) element.textContent = text;
};

/** Keeps the children of an element: one for each item, by its key, in the order of the items. */
export class Keyed<T, E extends Element> {
  private readonly elements = new Map<number | string, E>();

  constructor(
    private readonly parent: Element,
    private readonly keyOf: (item: T) => number | string,
    private readonly create: (item: T) => E,
    private readonly update: (element: E, item: T) => void = () => undefined,
  ) {}

  show(items: readonly T[]): void {
    const gone = new Set(this.elements.keys());
    let previous: Element | null = null;
    for (const item of items) {
      const key = this.keyOf(item);
      gone.delete(key);
      let element = this.elements.get(key);
      if (!element) this.elements.set(key, (element = this.create(item)));
      const place: Element | null = previous ? previous.nextElementSibling : this.parent.firstElementChild;
      if (place !== element) this.parent.insertBefore(element, place);
      this.update(element, item);
      previous = element;
    }
    for (const key of gone) {
      this.elements.get(key)?.remove();
      this.elements.delete(key);
    }
  }
}
