/** A folder for `node_modules/react` that does as much of React as one component needs, so that no registry is asked. */

const TYPES = `
  export function useState<Value>(first: Value): [Value, (value: Value) => void];
  export function useState<Value>(): [Value | undefined, (value: Value | undefined) => void];
  export function useEffect(work: () => void, on: readonly unknown[]): void;
  export function mount(component: () => unknown, root: Element): void;`;
const JSX_TYPES = `
  export namespace JSX { interface IntrinsicElements { [name: string]: object } }
  export function jsx(type: string, properties: object): object;
  export { jsx as jsxs };`;
/** Does an effect twice, as StrictMode does in development. */
const RUNTIME = `
  const states = [];
  let next = 0, render, effect;
  export function useState(first) {
    const place = next++;
    if (!(place in states)) states[place] = first;
    return [states[place], (value) => { states[place] = value; render(); }];
  }
  export function useEffect(work) { effect ??= work; }
  export function mount(component, root) {
    render = () => { next = 0; update(root, component()); };
    render();
    effect(), effect();
  }
  function update(parent, children) {
    [children].flat().forEach((child, index) => {
      if (typeof child === 'string') return void (parent.textContent = child);
      const { children = [], ...properties } = child.properties;
      const element = parent.children[index] ?? parent.appendChild(document.createElement(child.type));
      for (const [name, value] of Object.entries(properties)) {
        const text = value === true ? '' : value;
        if (typeof value === 'function') element[name.toLowerCase()] = value;
        else if (value !== undefined && element.getAttribute(name) !== text) element.setAttribute(name, text);
      }
      update(element, children);
    });
  }`;

export const STAND_IN_REACT: Readonly<Record<string, string>> = {
  'package.json': '{"name":"react","type":"module","exports":{".":"./index.js","./jsx-runtime":"./jsx.js"}}',
  'index.js': RUNTIME,
  'index.d.ts': TYPES,
  'jsx.js': 'export const jsx = (type, properties) => ({ type, properties }); export { jsx as jsxs };',
  'jsx.d.ts': JSX_TYPES,
};
