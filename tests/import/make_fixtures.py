"""Makes the fixtures of this folder with the earlier program itself.

    python3 -m venv /tmp/pg && /tmp/pg/bin/pip install polyglav==0.37.0
    /tmp/pg/bin/python tests/import/make_fixtures.py tests/import/fixtures/polyglav-0.37.0

The same with 0.49.0. The tests read the files alone and need no Python. The program runs in a new home, against the
scripted backend below; what no command writes comes from the program's own classes; two damaged files are written by
hand. Paths and ports of this machine are replaced, and files that svc has no use for are left out to keep it small.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polyglav

VERSION = polyglav.get_version()
NEW = VERSION >= '0.40'  # modes read and write, one tool `call`, roles as Markdown files
OUT = Path(sys.argv[1]).resolve()
ROOT = Path(tempfile.mkdtemp(prefix='fixtures-'))
HOME = ROOT / 'home'
WORK = ROOT / 'worktree'
STATE = WORK / '.polyglav'
USER = HOME / '.config' / 'polyglav'


class Backend(BaseHTTPRequestHandler):
    """Does what the last user message says, line by line: `@call NAME JSON`, `@think TEXT`, `@say TEXT`,
    `@status CODE`, `@cut TEXT`, `@empty`, `@wait`. A call is made once; its result moves the script on."""

    waits = threading.Event()
    goes_on = threading.Event()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        messages = body['messages']
        last = max((i for i, m in enumerate(messages) if m['role'] == 'user'), default=0)
        done = sum(1 for m in messages[last:] if m['role'] == 'tool')
        lines = [line.strip() for line in str(messages[last].get('content') or '').splitlines()]
        lines = [line for line in lines if line.startswith('@')]
        if not body.get('stream'):
            asked = 'permission' in str(messages[0].get('content')).lower()
            text = 'yes' if asked else 'A summary of the conversation so far.'
            return self.answer({'choices': [{'message': {'role': 'assistant', 'content': text}}]})
        calls = [line for line in lines if line.startswith('@call ')]
        if done < len(calls):
            _, name, arguments = calls[done].split(' ', 2)
            call = {'index': 0, 'id': f'call_{done}', 'type': 'function',
                    'function': {'name': name, 'arguments': arguments}}
            deltas = [{'reasoning_content': 'I need a tool.'}, {'tool_calls': [call]}]
            return self.stream(deltas, 'tool_calls')
        deltas, reason = [], 'stop'
        for line in lines:
            word, _, text = line.partition(' ')
            if word == '@status':
                return self.answer({'error': {'message': f'scripted {text}'}}, int(text))
            if word == '@think':
                deltas.append({'reasoning_content': text})
            if word == '@cut':
                reason = 'length'
            if word in ('@say', '@cut'):
                deltas.append({'content': text})
        if '@empty' in lines:
            return self.stream([], 'stop')
        self.stream(deltas or [{'content': 'Done.'}], reason, '@wait' in lines)

    def do_GET(self):
        self.answer({'data': [{'id': 'demo-1'}]})

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, deltas, reason, wait=False):
        choices = [{'delta': d, 'finish_reason': None} for d in deltas]
        choices.append({'delta': {}, 'finish_reason': reason})
        chunks = [{'choices': [c]} for c in choices]
        chunks[-1]['usage'] = {'prompt_tokens': 40, 'completion_tokens': 8, 'total_tokens': 48}
        *first, last = [f'data: {json.dumps(c)}\n\n' for c in chunks]
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.end_headers()
        self.wfile.write(''.join(first).encode())
        if wait:
            self.wfile.flush()
            self.waits.set()
            self.goes_on.wait(10)
        self.wfile.write(f'{last}data: [DONE]\n\n'.encode())

    def log_message(self, *_):
        pass


def environment():
    return {**os.environ, 'HOME': str(HOME), 'TMPDIR': str(ROOT / 'tmp'), 'TERM': 'dumb', 'NO_COLOR': '1', 'EDITOR': 'true'}


def run(*args, stdin=''):
    done = subprocess.run([sys.executable, '-m', 'polyglav', *args], cwd=WORK, env=environment(), text=True,
                          input=stdin, capture_output=True, timeout=120)
    if done.returncode not in (0, 1):
        raise SystemExit(f'{args}: {done.returncode}\n{done.stdout}\n{done.stderr}')
    return done.stdout


def turn(prompt, *args, session=''):
    named = ['--session-id', session] if session else []
    return run('run', *named, *args, '-p', prompt)


def configure(url):
    setting = lambda scope, key, value: run('config', 'set', scope, key, json.dumps(value))
    # The user's own
    setting('--global', 'provider', 'ollama')
    setting('--global', 'base_url', url)
    setting('--global', 'model', 'demo-1')
    setting('--global', 'temperature', 0.3)
    setting('--global', 'max_tokens', 4096)
    setting('--global', 'compact_keep', 1)
    setting('--global', 'memory_scopes', {'role': True, 'team': False, 'job': True})
    # The worktree's
    setting('--local', 'tool_permission', {'bash': 'deny', 'vcs': 'allow', 'bash_allow': ['ls']})
    setting('--local', 'tools.deny', ['web_fetch'])
    setting('--local', 'noise_tools' if not NEW else 'tools_output_drop', ['web_fetch', 'list_dir'])
    setting('--local', 'session_tool_max_chars' if not NEW else 'tools_output_max_chars', 2000)
    setting('--local', 'report.webhook', 'https://hooks.example/report')
    setting('--local', 'footer_tokens', ['context'])
    setting('--local', 'grant_permission', {'bash': 'deny', 'edit': 'allow'})
    setting('--local', 'mcp.servers', [
        {'name': 'tickets', 'transport': 'http', 'url': 'https://tickets.example/mcp',
         'headers': {'Authorization': 'Bearer fake-ticket-token', 'X-Team': 'core'}},
        {'name': 'files', 'command': 'files-server', 'args': ['--root', '.'], 'timeout': 20}])
    review = {'system_prompt': 'Review only.', 'tool_permission': {'edit': 'deny'},
              'tools.deny': ['git_commit']}
    if NEW:
        review['cap'] = 'write'
        setting('--local', 'mode', 'write')
    else:
        setting('--local', 'mode', 'build')
        setting('--local', 'plugins', [f'polyglav-core-{name}' for name in (
            'fs', 'edit', 'exec', 'git', 'dev', 'mcp', 'web', 'webhook', 'ollama', 'groq', 'openai',
            'anthropic', 'opencode', 'eval')] + ['word-count'])
    setting('--local', 'modes', {'review': review})


def registries():
    from polyglav.models import ModelRegistry
    from polyglav.providers.registry import ProviderRegistry
    from polyglav.roles import Role, RoleRegistry
    from polyglav.skills import Skill, SkillRegistry
    from polyglav.teams import Team, TeamRegistry, TeamStage
    connections = ProviderRegistry(global_dir=HOME)
    connections.put('groq', '', 'gsk-fake-key-of-the-fixture')
    connections.put('lab', 'https://models.example/v1', 'sk-fake-key-of-the-lab')
    ModelRegistry(global_dir=HOME).put('groq', 'llama-3.3-70b-versatile')

    roles = RoleRegistry(global_dir=HOME, local_path=STATE / 'roles.json')
    roles.put(Role(name='clerk', system_prompt='You keep the minutes.', tags=['office'],
                   skills=['minutes'], tool_permission={'bash': 'deny', 'web': 'deny', 'edit': 'allow'},
                   grant_permission={'edit': 'deny'}, ask_policy={'permission': 'human'}))
    roles.put(Role(name='checker', system_prompt='You check the work and end with a verdict.',
                   tool_permission={'edit': 'deny', 'bash': 'deny'}))
    roles.put(Role(name='archivist', system_prompt='You file things.', model='groq/llama-3.3-70b-versatile',
                   tool_permission={'edit': 'deny'}), scope='global')
    if NEW:
        roles.put(Role(name='herald', instructions='herald.md', callable='ask'))
        (STATE / 'roles').mkdir(parents=True, exist_ok=True)
        (STATE / 'roles' / 'herald.md').write_text(
            '---\ndescription: Announces releases\ntags: ["release"]\n'
            'tool_permission: {"bash": "deny", "edit": "deny"}\n---\nYou announce what was done.\n')
    teams = TeamRegistry(global_dir=HOME, local_path=STATE / 'teams.json')
    teams.put(Team(name='desk', description='Write and check', tags=['office'],
                   stages=[TeamStage(role='clerk', task_hint='Write it.', handoff_note='Pass it on.'),
                           TeamStage(role='checker')],
                   loop={'from': 0, 'until': 1, 'max_iterations': 2, 'verdict': 'VERDICT:'}))
    if NEW:
        teams.put(Team(name='office', type='hierarchical', manager='clerk',
                       members=[TeamStage(role='checker')]))
    skills = SkillRegistry(global_dir=HOME, local_dir=STATE / 'skills')
    skills.put(Skill(name='minutes', content='# Minutes\n\nOne line a decision.\n'))
    skills.put(Skill(name='tone', content='Write plainly.\n'), scope='global')


def plugins():
    for root, name in ((STATE, 'word-count'), (USER, 'moon-phase')):
        folder = root / 'plugins' / name
        (folder / 'src').mkdir(parents=True)
        (folder / 'manifest.json').write_text(json.dumps({
            'name': name, 'version': '1.2.0', 'description': f'The tool {name}',
            'polyglav_version': '>=0.30.0,<1.0', 'python': '>=3.11', 'entry': 'src/plugin.py',
            'provides': {'tools': [name.replace('-', '_')]}}, indent=2))
        (folder / 'src' / 'plugin.py').write_text(
            'def register_tools(registry):\n'
            "    @registry.register('" + name.replace('-', '_') + "', description='A tool')\n"
            '    def tool():\n        return "1"\n')


def sessions():
    (WORK / 'README.md').write_text('# Project\n\nThree lines.\n')
    def call(tool, /, **arguments):
        return f'@call {tool} {json.dumps(arguments)}\n'

    # Tool calls with a result that the log leaves out, a denied call, one outside of the worktree, and thinking
    turn('Look around.\n' + call('file_read', path='README.md') + call('list_dir', path='.') +
         call('run_command', command='whoami') + call('git', operation='status') +
         call('file_read', path='/etc/hostname') + '@think That is all.\n@say It has three lines.',
         session='survey')
    turn('And again.\n' + call('file_write', path='notes.txt', content='one\n') + '@say Noted.',
         session='survey')
    turn('Fail.\n@status 401', session='failing')
    turn('Long.\n@cut It goes on', session='failing')
    # Every other end of a turn, an analysed result, and an error without a code
    run('config', 'set', 'auto_continue', 'false')
    run('config', 'set', 'stream_retries', '0')
    run('config', 'set', 'tool_analysis', 'true')
    turn('Long.\n@think And so on.\n@cut It ends here', session='endings')
    turn('Nothing.\n@empty', session='endings')
    turn('Look.\n' + call('file_read', path='README.md') + '@say Looked.', session='endings')
    waiting = subprocess.Popen([sys.executable, '-m', 'polyglav', 'run', '--session-id', 'endings', '-p',
                                'Wait.\n@say Half of it, \n@wait'], cwd=WORK, env=environment(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    Backend.waits.wait(20)
    time.sleep(0.5)
    waiting.send_signal(signal.SIGINT)
    waiting.wait(20)
    Backend.goes_on.set()
    for key in ('auto_continue', 'stream_retries', 'tool_analysis'):
        run('config', 'unset', key)
    from polyglav.sessions.manager import SessionManager
    manager = SessionManager(STATE / 'sessions')
    session = manager.load('endings')
    session.add_user('Search.', model='demo-1', provider='ollama', mode='build', reasoning='auto')
    session.add_system('Search results: none.')
    session.add_text('Nothing was found.')
    session.end_turn('ok')
    session.add_error('', 'A provider without codes failed.')
    manager.save(session)
    # A sub-agent in a session of its own, and a team with a loop
    sub = 'Write the minutes.\n@call file_write {"path": "minutes.md", "content": "Decided.\\n"}\n@say Written.'
    stage = 'Do the work.\n@say VERDICT: pass'
    if NEW:
        calls = call('call', target='clerk', task=sub) + call('call', target='desk', kind='team', task=stage)
    else:
        calls = call('delegate', role='clerk', task=sub) + call('team', name='desk', task=stage)
    turn('Delegate it.\n' + calls + '@say Delegated.')
    # A permission that a person, or in the older version the parent, grants
    wanted = call('ask', question='May I write the draft?', kind='permission', permission='edit')
    written = wanted + call('file_write', path='draft.txt', content='one\n') + '@say I may.'
    if NEW:
        run(stdin='\n'.join(['"""', 'Ask first.', *written.splitlines(), '"""', 'always', '/exit']) + '\n')
    else:
        turn('Let it ask.\n' + call('delegate', role='checker', task='Ask first.\n' + written), session='granting')
    # Questions, which an unattended run parks: one pending, one answered later
    run('config', 'set', 'unattended', 'true')
    user = 'user' if NEW else 'human'
    ask = call('ask', question='Which colour should the door have?', context='It is a front door.',
               options=['red', 'blue'], target=user)
    turn('Ask.\n' + ask + '@say Parked.', session='door')
    turn('Ask more.\n' + call('ask', question='Which size should the door have?', context='In metres.',
                              target=user) + '@say Parked too.', session='door')
    run('config', 'unset', 'unattended')
    # The terminal session: turns, commands, a compaction
    lines = ['Hello.', '@say ignored', '/tool list_dir {"path": "."}', '/history', 'Two.', '/compact', 'Three.', '/mode plan', '/exit']
    run(stdin='\n'.join(lines) + '\n')


def jobs():
    run('jobs', 'add', 'often', '--interval', '30', '--prompt', 'Look.\n@say Looked.', '--approval', 'auto',
        '--session', 'often-log', '--retries', '0')
    (STATE / 'jobs').mkdir(exist_ok=True)
    (STATE / 'jobs' / 'nightly.md').write_text('# nightly\n\n## Task\nCount the files.\n')
    run('jobs', 'add', 'nightly', '--cron', '0 2 * * *', '--file', '.polyglav/jobs/nightly.md', '--role', 'clerk',
        '--tools-deny', 'web_search', '--tool-permission', 'bash=deny', '--backoff', '1.5', '--approval', 'auto',
        '--mode', 'read' if NEW else 'plan')
    run('jobs', 'add', 'odd', '--cron', '*/5 * * * *', '--prompt', 'Go.', '--mode', 'turbo', '--approval', 'auto')
    run('jobs', 'add', 'idea', '--interval', '3600', '--prompt', 'Maybe.\n@say Maybe so.')
    run('jobs', 'add', 'once', '--at', '2030-01-01T00:00:00', '--prompt', 'Once.', '--require-approval')
    run('jobs', 'add-supervisor', 'lead', '--task', 'Lead the work.')
    run('jobs', 'run', 'often', '--no-retry')
    run('jobs', 'run', 'nightly', '--no-retry')
    if not NEW:  # this version stores a proposed job as enabled; some of its users have files like this
        from polyglav.jobs import JobRegistry
        register = JobRegistry(STATE / 'jobs.json')
        register.find('idea').enabled = False
        register.save()


def asks():
    from polyglav.asks import AskStore, inject_answer
    store = AskStore(STATE / 'asks.json')
    answered = store.answer(2, 'Two by one.')
    inject_answer(store, answered)


def memories():
    from polyglav.memory import write_memory
    write_memory(WORK, 'role', 'clerk', 'The minutes go to minutes.md.')
    write_memory(WORK, 'team', 'desk', 'The checker wants dates. ' * 100)


def fleet():
    from polyglav.fleet import AgentState, FleetState
    for name in ('docs', 'shop'):
        (WORK / name / '.polyglav').mkdir(parents=True)
        (WORK / name / '.polyglav' / 'config.json').write_text('{"mode": "plan"}')
    run('fleet', 'init')
    run('fleet', 'add', 'desk', '--dir', 'docs', '--port', '8801', '--max-restarts', '0')
    path = STATE / 'fleet.json'
    roster = json.loads(path.read_text())
    roster['agents'].append({'name': 'custom', 'dir': 'shop', 'command': ['serve-it', '{port}']})
    path.write_text(json.dumps(roster, indent=2))
    state = FleetState(WORK)
    state.agents['docs'] = AgentState(status='healthy', pid=4242, port=8780, restarts=1,
                                      last_error='HTTP 500', started_at='2026-01-01T00:00:00+00:00')
    state.save()


def by_hand():
    folder = STATE / 'sessions'
    (folder / 'flat.json').write_text(json.dumps(
        {'name': 'flat', 'messages': [{'role': 'user', 'content': 'From long ago'}]}))
    (folder / 'torn.json').write_text('{\n  "session_name": "torn",\n  "turns": [')


def copy(url):
    shutil.rmtree(OUT, ignore_errors=True)
    kept = {'worktree': (WORK, ('docs/.polyglav/config.json', 'shop/.polyglav/config.json')),
            'home': (HOME, ())}
    for name, (root, more) in kept.items():
        base = root / ('.polyglav' if name == 'worktree' else '.config/polyglav')
        files = [p for p in base.rglob('*') if p.is_file()] + [root / each for each in more]
        for path in files:
            inner = path.relative_to(root)
            if any(part in ('output', 'tmp', '__pycache__') for part in inner.parts):
                continue
            if inner.name in ('.polyglav_history',):
                continue
            text = path.read_text()
            text = text.replace(str(WORK), '/home/ada/project').replace(str(HOME), '/home/ada')
            text = text.replace(str(ROOT), '/home').replace(url, 'http://backend.example')
            text = re.sub(r'/usr/\S*?python\S*', 'python3', text)
            target = OUT / name / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)


def main():
    HOME.mkdir()
    (ROOT / 'tmp').mkdir()
    WORK.mkdir()
    os.environ['HOME'] = str(HOME)
    os.chdir(WORK)
    server = ThreadingHTTPServer(('127.0.0.1', 0), Backend)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f'http://127.0.0.1:{server.server_port}'
    configure(url)
    registries()
    sessions()
    jobs()
    asks()
    memories()
    fleet()
    plugins()
    by_hand()
    copy(url)
    shutil.rmtree(ROOT)


main()
