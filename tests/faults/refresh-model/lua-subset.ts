/** Runs the part of Lua 5.1 that the gateway's Redis scripts use; whatever else a script holds is refused by name. */

/** `undefined` is nil. Lists are tables with the keys 1, 2, 3 and so on. */
export type LuaValue = string | number | boolean | undefined | readonly LuaValue[];
export type LuaFunction = (parameters: readonly LuaValue[]) => LuaValue;
export type LuaGlobals = Readonly<Record<string, LuaValue | LuaFunction>>;

/** What a script runs in: its local variables, then the globals. */
interface Scope {
  readonly locals: Map<string, LuaValue>;
  readonly outer: Scope | undefined;
  readonly globals: LuaGlobals;
}
type Expression = (scope: Scope) => LuaValue;
/** What a block returns; undefined when it ran to its end. */
type Statement = (scope: Scope) => { readonly returned: LuaValue } | undefined;

const TOKEN =
  /\s*(?:(\d+(?:\.\d+)?)|'([^']*)'|"([^"]*)"|([A-Za-z_][\w.]*)|(==|~=|<=|>=|\.\.|[-+*/<>=(){}[\],#]))/y;
const KEYWORDS = new Set([
  'and',
  'or',
  'not',
  'if',
  'then',
  'elseif',
  'else',
  'end',
  'local',
  'return',
  'do',
]);
const NO_STRING = Symbol('not a string');

interface Token {
  readonly text: string;
  /** The value of a literal. */
  readonly literal: string | number | typeof NO_STRING;
}

const PRECEDENCE: Readonly<Record<string, number>> = {
  or: 1,
  and: 2,
  '==': 3,
  '~=': 3,
  '<': 3,
  '>': 3,
  '<=': 3,
  '>=': 3,
  '..': 4,
  '+': 5,
  '-': 5,
  '*': 6,
  '/': 6,
};

export function compileLua(text: string): (globals: LuaGlobals) => LuaValue {
  const parser = new Parser(tokensOf(text));
  const run = parser.block();
  parser.expectEnd();
  return (globals) => run({ locals: new Map(), outer: undefined, globals })?.returned;
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  const source = text.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const start = TOKEN.lastIndex;
    const match = TOKEN.exec(source);
    if (!match) throw new Error(`not in the subset of Lua: ${source.slice(start, start + 30)}`);
    const [, number, single, double, name, symbol] = match;
    const string = single ?? double;
    if (number !== undefined) tokens.push({ text: number, literal: Number(number) });
    else if (string !== undefined) tokens.push({ text: `'${string}'`, literal: string });
    else tokens.push({ text: name ?? symbol ?? '', literal: NO_STRING });
  }
  return tokens;
}

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  block(): Statement {
    const statements: Statement[] = [];
    while (!['', 'end', 'else', 'elseif'].includes(this.#peek())) statements.push(this.#statement());
    return (outer) => {
      const scope = { locals: new Map<string, LuaValue>(), outer, globals: outer.globals };
      for (const statement of statements) {
        const result = statement(scope);
        if (result) return result;
      }
      return undefined;
    };
  }

  expectEnd(): void {
    if (this.#peek() !== '') throw this.#unexpected();
  }

  #statement(): Statement {
    if (this.#takes('local')) return this.#local();
    if (this.#takes('if')) return this.#if();
    if (this.#takes('return')) {
      const value = ['', 'end', 'else', 'elseif'].includes(this.#peek())
        ? () => undefined
        : this.#expression();
      return (scope) => ({ returned: value(scope) });
    }
    const name = this.#name();
    if (this.#takes('=')) {
      const value = this.#expression();
      return (scope) => assign(scope, name, value(scope));
    }
    const call = this.#call(name);
    return (scope) => {
      call(scope);
      return undefined;
    };
  }

  #local(): Statement {
    const name = this.#name();
    const value = this.#takes('=') ? this.#expression() : () => undefined;
    return (scope) => {
      scope.locals.set(name, value(scope));
      return undefined;
    };
  }

  #if(): Statement {
    const condition = this.#expression();
    this.#expect('then');
    const whenTrue = this.block();
    let whenFalse: Statement = () => undefined;
    if (this.#takes('elseif')) whenFalse = this.#if();
    else {
      if (this.#takes('else')) whenFalse = this.block();
      this.#expect('end');
    }
    return (scope) => (isTrue(condition(scope)) ? whenTrue(scope) : whenFalse(scope));
  }

  #expression(above = 0): Expression {
    let left = this.#unary();
    for (;;) {
      const operator = this.#peek();
      const precedence = PRECEDENCE[operator];
      if (precedence === undefined || precedence <= above) return left;
      this.#next++;
      left = binary(operator, left, this.#expression(precedence));
    }
  }

  #unary(): Expression {
    if (this.#takes('not')) {
      const operand = this.#unary();
      return (scope) => !isTrue(operand(scope));
    }
    if (this.#takes('-')) {
      const operand = this.#unary();
      return (scope) => -numberIn(operand(scope));
    }
    if (this.#takes('#')) {
      const operand = this.#unary();
      return (scope) => lengthOf(operand(scope));
    }
    return this.#primary();
  }

  #primary(): Expression {
    if (this.#takes('(')) {
      const inner = this.#expression();
      this.#expect(')');
      return inner;
    }
    if (this.#takes('{')) {
      const items = this.#list('}');
      return (scope) => items.map((item) => item(scope));
    }
    const token = this.#tokens[this.#next];
    if (token !== undefined && token.literal !== NO_STRING) {
      const { literal } = token;
      this.#next++;
      return () => literal;
    }
    for (const [word, value] of [
      ['nil', undefined],
      ['true', true],
      ['false', false],
    ] as const) {
      if (this.#takes(word)) return () => value;
    }
    const name = this.#name();
    if (this.#peek() === '(') return this.#call(name);
    if (!this.#takes('[')) return (scope) => read(scope, name);
    const index = this.#expression();
    this.#expect(']');
    return (scope) => itemOf(read(scope, name), numberIn(index(scope)));
  }

  #call(name: string): Expression {
    this.#expect('(');
    const parameters = this.#list(')');
    return (scope) => {
      const called = scope.globals[name];
      if (typeof called !== 'function') throw new Error(`not in the subset of Lua: ${name}()`);
      return called(parameters.map((parameter) => parameter(scope)));
    };
  }

  #list(closing: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#takes(closing)) {
      items.push(this.#expression());
      if (this.#peek() !== closing) this.#expect(',');
    }
    return items;
  }

  #name(): string {
    const token = this.#tokens[this.#next];
    if (!token || token.literal !== NO_STRING || !/^[A-Za-z_]/.test(token.text) || KEYWORDS.has(token.text))
      throw this.#unexpected();
    this.#next++;
    return token.text;
  }

  #peek(): string {
    return this.#tokens[this.#next]?.text ?? '';
  }

  #takes(text: string): boolean {
    if (this.#peek() !== text) return false;
    this.#next++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#takes(text)) throw this.#unexpected();
  }

  #unexpected(): Error {
    return new Error(`not in the subset of Lua: "${this.#peek()}" as token ${this.#next}`);
  }
}

function binary(operator: string, left: Expression, right: Expression): Expression {
  switch (operator) {
    case 'and':
      return (scope) => {
        const value = left(scope);
        return isTrue(value) ? right(scope) : value;
      };
    case 'or':
      return (scope) => {
        const value = left(scope);
        return isTrue(value) ? value : right(scope);
      };
    case '==':
      return (scope) => left(scope) === right(scope);
    case '~=':
      return (scope) => left(scope) !== right(scope);
    case '..':
      return (scope) => text(left(scope)) + text(right(scope));
    case '<':
      return (scope) => isLess(left(scope), right(scope));
    case '>':
      return (scope) => isLess(right(scope), left(scope));
    case '<=':
      return (scope) => !isLess(right(scope), left(scope));
    case '>=':
      return (scope) => !isLess(left(scope), right(scope));
    case '+':
      return (scope) => numberIn(left(scope)) + numberIn(right(scope));
    case '-':
      return (scope) => numberIn(left(scope)) - numberIn(right(scope));
    case '*':
      return (scope) => numberIn(left(scope)) * numberIn(right(scope));
    default:
      return (scope) => numberIn(left(scope)) / numberIn(right(scope));
  }
}

export function isTrue(value: LuaValue): boolean {
  return value !== undefined && value !== false;
}

/** Lua converts strings to numbers in arithmetic, and never in comparisons. */
export function numberIn(value: LuaValue): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof number !== 'number' || Number.isNaN(number))
    throw new Error('attempt to use a value as a number');
  return number;
}

export function text(value: LuaValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  throw new Error('attempt to use a value as a string');
}

function isLess(left: LuaValue, right: LuaValue): boolean {
  if (typeof left === 'number' && typeof right === 'number') return left < right;
  if (typeof left === 'string' && typeof right === 'string') return left < right;
  throw new Error('attempt to compare two values of different types');
}

function itemOf(list: LuaValue, index: number): LuaValue {
  if (!Array.isArray(list)) throw new Error('attempt to index a value that is no table');
  return list[index - 1];
}

function lengthOf(value: LuaValue): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  throw new Error('attempt to get the length of a value without one');
}

function read(scope: Scope, name: string): LuaValue {
  for (let inner: Scope | undefined = scope; inner; inner = inner.outer) {
    if (inner.locals.has(name)) return inner.locals.get(name);
  }
  const value = scope.globals[name];
  if (typeof value === 'function') throw new Error(`not in the subset of Lua: ${name} without a call`);
  return value;
}

function assign(scope: Scope, name: string, value: LuaValue): undefined {
  for (let inner: Scope | undefined = scope; inner; inner = inner.outer) {
    if (!inner.locals.has(name)) continue;
    inner.locals.set(name, value);
    return;
  }
  throw new Error(`not in the subset of Lua: the global variable ${name}`);
}
