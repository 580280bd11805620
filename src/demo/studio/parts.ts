/** Finds elements by their `data-part`, and creates elements from the page's templates. */

/** @throws Error if no element below `root` has `data-part="name"` */
export function part<E extends Element = HTMLElement>(root: ParentNode, name: string): E {
  const element = root.querySelector<E>(`[data-part="${name}"]`);
  if (element === null) throw new Error(`The page has no part "${name}"`);
  return element;
}

/** Copies the only element of the template. */
export function fromTemplate(document: Document, id: string): HTMLElement {
  const template = document.querySelector<HTMLTemplateElement>(`template#${id}`);
  const copy = template && document.importNode(template.content, true).querySelector<HTMLElement>('*');
  if (!copy) throw new Error(`The page has no template "${id}"`);
  return copy;
}
