#!/usr/bin/env python3
"""Another open flash-sale project beside ours: the same crowd on the same machine, then kill -9 of each of its parts.

Needs built programs of that project and of ours, and Debian's redis-server, rabbitmq-server and mariadb-server. Each
side gets servers of its own on loopback below --dir, one side after the other. `docs/performance.md` says which project
this is, under which settings, and what came out. Python's standard library only; no test runs it.

    scripts/beside.py --ours target/dist/seckill --checkout DIR --programs DIR --json FILE

The load generator is the same for both: a closed loop of --connections keep-alive connections, each buyer posts one
purchase and asks again after an error until the answer is final or --patience is over. Exit code 0: measured, whatever
was lost; 1: could not run.
"""

import argparse
import base64
import collections
import datetime
import hashlib
import hmac
import json
import multiprocessing
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

YES, NO, AGAIN = "yes", "no", "again"
TICKS = os.sysconf("SC_CLK_TCK")
RETRY_S = 0.02  # Between two tries of one buyer.
ANSWER_S = 10  # A connection without an answer for so long is given up.
RESTART_S = 0.5  # Between the death of a project's part and its next start, as a supervisor waits.


def say(text):
    print(f"beside: {text}", file=sys.stderr, flush=True)


# ---- processes -------------------------------------------------------------------------------------------------------


def free_port():
    """A free port below the ephemeral ones, so that no outgoing connection takes it while its owner is dead."""
    while True:
        port = 11000 + int.from_bytes(os.urandom(2), "big") % 15000
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def until(what, ready, seconds):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} is not ready after {seconds} s")
        time.sleep(0.02)


def listens(port, greeting=b""):
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as probe:
            probe.settimeout(1)
            if greeting:
                probe.sendall(greeting)
                return bool(probe.recv(1))
            return True
    except OSError:
        return False


def cpu_s(pid):
    """Processor seconds of a process and of its ended children (Redis forks to save)."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


class Part:
    """One process that can be killed and started again."""

    def __init__(self, name, command, cwd, env=None):
        self.name, self.command, self.cwd, self.env = name, command, cwd, env
        self.process = None

    def start(self):
        log = open(self.cwd / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(self.command, cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log, start_new_session=True)
        log.close()

    def ended(self):
        return self.process.poll() is not None

    def stop(self, how=signal.SIGTERM):
        if self.process and not self.ended():
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Database:
    """One open `mariadb` client, so that counting costs the server next to nothing."""

    def __init__(self, socket_file):
        self.client = subprocess.Popen(["mariadb", "--no-defaults", "-u", "root", "-S", str(socket_file), "-nNB"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rows(self, sql):
        self.client.stdin.write(f"{sql};\nSELECT '--end--';\n")
        self.client.stdin.flush()
        rows = []
        while (line := self.client.stdout.readline().rstrip("\n")) != "--end--":
            if not line and self.client.poll() is not None:
                raise RuntimeError(f"the database client ended at: {sql}")
            rows.append(line.split("\t"))
        return rows

    def close(self):
        self.client.stdin.close()
        self.client.wait()


# ---- the two sides ---------------------------------------------------------------------------------------------------


def jwt(secret, claims):
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    text = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    return (text + b"." + part(hmac.new(secret.encode(), text, hashlib.sha256).digest())).decode()


def http_post(path, token, body):
    return (f"POST {path} HTTP/1.1\r\nHost: sale\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()


class Side:
    """What both sides have in common: where their orders lie is theirs to say, in `orders_of`."""

    def count(self, number):
        return int(self.database.rows(f"SELECT COUNT(*) FROM {self.orders_of(number)}")[0][0])

    def orders(self, number):
        """How many orders each buyer has."""
        sql = f"SELECT user_id, COUNT(*) FROM {self.orders_of(number)} GROUP BY user_id"
        return {int(user): int(count) for user, count in self.database.rows(sql)}


class Ours(Side):
    """`seckill dev --split`: it starts its servers and roles, and starts again what dies."""

    title, durable = "seckill", True
    kills = {"api": 3, "relay": 3, "consumer": 3, "reconcile": 3, "redis": 1, "rabbitmq": 1}

    def __init__(self, binary, folder):
        self.binary, self.data = binary, folder / "dev"
        self.dev = Part("dev", [binary, "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0",
                                "--set", "log.level=warn", "dev", "--split", "--no-demo", "--data-dir",
                                str(self.data)], folder)
        told = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        built = datetime.datetime.fromtimestamp(os.path.getmtime(binary), datetime.timezone.utc)
        self.version = f"{told}, built {built.isoformat(timespec='minutes')}"
        self.settings = {"redis": "appendonly yes, appendfsync always", "mariadb": "flush log at commit 1",
                         "everything else": "as `seckill dev` has it"}

    def start(self):
        self.dev.start()
        until("seckill dev", lambda: self.dev.ended() or (self.data / "dev.json").exists(), 120)
        told = self.told()
        self.port = int(told["api"].rpartition(":")[2])
        self.secret = told["jwt_secret"]
        self.database = Database(self.data / "mysql" / "socket")
        until("the api", lambda: listens(self.port), 30)

    def told(self):
        return json.loads((self.data / "dev.json").read_text())

    def open_sale(self, number, stock):
        subprocess.run([self.binary, "--data-dir", str(self.data), "sale", "create", "--id", f"b{number}", "--product",
                        "beside", "--title", "beside", "--stock", str(stock), "--limit", "1", "--starts-at",
                        "2020-01-01T00:00:00Z", "--ends-at", "2099-01-01T00:00:00Z", "--warm"],
                       check=True, stdout=subprocess.DEVNULL)

    def request(self, number, buyer):
        now = int(time.time())
        claims = {"iss": "seckill", "aud": "seckill", "sub": str(buyer), "iat": now, "exp": now + 3600}
        return http_post(f"/v1/sales/b{number}/orders", jwt(self.secret, claims), '{"quantity":1}')

    @staticmethod
    def verdict(status, body):
        return {202: YES, 409: NO, 410: NO}.get(status, AGAIN)

    @staticmethod
    def orders_of(number):
        return f"seckill.orders WHERE sale_id = 'b{number}'"

    def pids(self):
        return self.told()["pids"]

    def kill(self, name):
        os.kill(self.pids()[name], signal.SIGKILL)

    def runs(self, name):
        return os.path.exists(f"/proc/{self.pids()[name]}")

    def tend(self):
        """`dev` does it."""

    def stop(self):
        if hasattr(self, "database"):
            self.database.close()
        self.dev.stop()


class Project(Side):
    """CCDD2022/seckill-system: a gateway (HTTP, JWT), gRPC services, Redis, RabbitMQ and MySQL, as ours has.

    On the way of a purchase are the gateway, the service that takes stock, the consumer that writes orders, the one
    that copies the stock to MySQL, and the one that reports dead letters. The other services have no part in it.
    """

    title = "CCDD2022/seckill-system"
    programs = {"gateway": "api_gateway", "seckill": "seckill_service", "consumer": "order_create_consumer",
                "reconciler": "stock_reconciler", "dead_letters": "dlq_consumer"}
    redis_settings = {"shipped": [], "durable": ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]}
    refusals = ("库存不足".encode(), "您已参与过".encode())
    secret = "beside"

    def __init__(self, checkout, programs, folder, redis):
        git = ["git", "-C", str(checkout), "log", "-1", "--format=%H %cs"]
        self.version = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        self.folder, self.built, self.redis = folder, programs, redis
        self.ports = {name: free_port() for name in ("gateway", "seckill", "redis", "mysql", "rabbitmq", "dist")}
        self.port = self.ports["gateway"]
        self.parts, self.down, self.stale = {}, {}, False
        self.kills = {"redis": 1} if redis == "durable" else {
            "gateway": 3, "seckill": 3, "consumer": 3, "reconciler": 3, "redis": 1, "rabbitmq": 1}
        self.durable = redis == "durable"
        self.title = f"{self.title}, Redis as {'ours' if redis == 'durable' else 'it ships'}"
        self.settings = {
            "redis": "appendonly yes, appendfsync always" if redis == "durable" else "no settings: its own defaults",
            "rabbitmq": "no settings", "mariadb": "as ours",
            "its config": "as its example, but no rate limits, release mode and logs at warn"}

    def start(self):
        for name in ("redis", "rabbitmq", "mariadb", "app/config"):
            (self.folder / name).mkdir(parents=True)
        self.start_redis()
        self.start_rabbitmq()
        self.start_mariadb()
        (self.folder / "app/config/config.yaml").write_text(json.dumps(self.config(), indent=1))
        for name, program in self.programs.items():
            self.add(Part(name, [str(self.built / program)], self.folder / "app"))
            if name in ("gateway", "seckill"):
                until(name, lambda port=self.ports[name]: listens(port), 30)

    def add(self, part):
        part.start()
        self.parts[part.name] = part

    def start_redis(self):
        command = ["redis-server", "--port", str(self.ports["redis"]), "--bind", "127.0.0.1", "--dir",
                   str(self.folder / "redis"), *self.redis_settings[self.redis]]
        self.add(Part("redis", command, self.folder / "redis"))
        until("Redis", lambda: listens(self.ports["redis"], b"PING\r\n"), 20)

    def start_rabbitmq(self):
        home = self.folder / "rabbitmq"
        (home / "plugins").write_text("[].")
        (home / "rabbitmq.conf").write_text("disk_free_limit.absolute = 50MB\n")
        (home / "env.conf").write_text("")
        own = {"NODENAME": "beside@localhost", "NODE_IP_ADDRESS": "127.0.0.1", "NODE_PORT": self.ports["rabbitmq"],
               "DIST_PORT": self.ports["dist"], "MNESIA_BASE": home / "data", "LOG_BASE": home / "log",
               "CONFIG_FILE": home / "rabbitmq.conf", "CONF_ENV_FILE": home / "env.conf", "LOGS": "-",
               "ENABLED_PLUGINS_FILE": home / "plugins", "GENERATED_CONFIG_DIR": home / "generated",
               "PID_FILE": home / "pid"}
        env = {**os.environ, **{f"RABBITMQ_{key}": str(value) for key, value in own.items()}, "HOME": str(home),
               "RUNNING_UNDER_SYSTEMD": "true", "ERL_FLAGS": f"-start_epmd false -erl_epmd_port {self.ports['dist']} "
               "-kernel inet_dist_use_interface {127,0,0,1}"}
        server = next(pathlib.Path("/usr/lib/rabbitmq").glob("lib/rabbitmq_server-*/sbin/rabbitmq-server"))
        self.add(Part("rabbitmq", [str(server)], home, env))
        until("RabbitMQ", lambda: listens(self.ports["rabbitmq"], b"AMQP\0\0\x09\x01"), 60)

    def start_mariadb(self):
        home = self.folder / "mariadb"
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={home}/data", "--skip-test-db",
                        "--auth-root-authentication-method=normal", "--user=root"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.add(Part("mariadb", [
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={home}/data", f"--socket={home}/socket",
            f"--pid-file={home}/pid", f"--port={self.ports['mysql']}", "--bind-address=127.0.0.1", f"--tmpdir={home}",
            "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1",
            "--transaction-isolation=READ-COMMITTED", "--character-set-server=utf8mb4", "--max-connections=500"], home))
        until("MariaDB", (home / "socket").exists, 30)
        self.database = Database(home / "socket")
        self.database.rows("CREATE DATABASE seckill_shop; CREATE USER 'sale'@'127.0.0.1' IDENTIFIED BY 'sale'; "
                           "GRANT ALL ON seckill_shop.* TO 'sale'@'127.0.0.1'")

    def config(self):
        def at(port):
            return {"host": "127.0.0.1", "port": port}

        services = {f"{name}_service": at(1) for name in ("user", "product", "auth", "order")}
        services |= {"api_gateway": at(self.ports["gateway"]), "seckill_service": at(self.ports["seckill"])}
        unlimited = {"rps": 10_000_000, "burst": 10_000_000}
        return {
            "server": {"port": self.ports["gateway"], "mode": "release", "read_timeout": 60, "write_timeout": 60},
            "log": {"level": "warn", "format": "json", "output": "file", "file_path": "./logs/app.log",
                    "max_size": 100, "max_backups": 3, "max_age": 30},
            "services": services,
            "database": {"mysql": {**at(self.ports["mysql"]), "user": "sale", "password": "sale",
                                   "dbname": "seckill_shop", "max_open_conns": 200, "max_idle_conns": 50},
                         "redis": {**at(self.ports["redis"]), "password": "", "db": 0}},
            "jwt": {"secret": self.secret, "expire_hours": 72},
            "mq": {**at(self.ports["rabbitmq"]), "user": "guest", "password": "guest", "channel_pool_size": 8,
                   "consumer_prefetch": 1},
            "rate_limits": {"global": unlimited, "seckill": unlimited, "order": unlimited}}

    def open_sale(self, number, stock):
        self.database.rows(f"INSERT INTO seckill_shop.products (id, name, price, stock, created_at, updated_at) "
                           f"VALUES ({number}, 'beside', 1, {stock}, NOW(), NOW())")

    def request(self, number, buyer):
        claims = {"user_id": buyer, "username": str(buyer), "exp": int(time.time()) + 3600, "iat": int(time.time())}
        return http_post("/api/v1/seckill/execute", jwt(self.secret, claims),
                         json.dumps({"product_id": number, "quantity": 1}))

    @classmethod
    def verdict(cls, status, body):
        if status == 200 and b'"success":true' in body:
            return YES
        return NO if status == 200 and any(text in body for text in cls.refusals) else AGAIN

    @staticmethod
    def orders_of(number):
        return f"seckill_shop.orders WHERE product_id = {number}"

    def pids(self):
        return {name: part.process.pid for name, part in self.parts.items()}

    def kill(self, name):
        self.parts[name].stop(signal.SIGKILL)
        self.stale = name == "rabbitmq"

    def runs(self, name):
        return not self.parts[name].ended()

    def tend(self):
        """Starts again what ended, whoever ended it, as its compose file's `restart: unless-stopped` does.

        The service that takes stock never connects to the broker again, so it is restarted when the broker answers, as
        an operator would.
        """
        for name, part in self.parts.items():
            if part.ended() and time.monotonic() > self.down.setdefault(name, time.monotonic() + RESTART_S):
                del self.down[name]
                part.start()
        if self.stale and self.runs("rabbitmq") and listens(self.ports["rabbitmq"], b"AMQP\0\0\x09\x01"):
            self.stale = False
            self.parts["seckill"].stop()

    def stop(self):
        if hasattr(self, "database"):
            self.database.close()
        for part in reversed(self.parts.values()):
            part.stop()


# ---- the crowd -------------------------------------------------------------------------------------------------------


class Connection:
    """One keep-alive connection and the buyer who uses it."""

    def __init__(self, port, wait):
        self.port, self.wait = port, wait
        self.socket, self.buyer, self.got, self.at = None, None, b"", 0.0

    def send(self, request):
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 2)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.wait.register(self.socket, selectors.EVENT_READ, self)
        self.got, self.at = b"", time.monotonic()
        self.socket.sendall(request)

    def answer(self):
        """(status, body) once it is whole, None before, OSError when the connection is over."""
        got = self.socket.recv(65536)
        if not got:
            raise OSError("closed")
        self.got += got
        head, end, body = self.got.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.I)
        if not end or length is None or len(body) < int(length[1]):
            return None
        return int(head[9:12]), body

    def drop(self):
        if self.socket is not None:
            self.wait.unregister(self.socket)
            self.socket.close()
            self.socket = None


def crowd_of_one_process(side, number, buyers, connections, patience, told, pipe):
    """Lets these buyers buy; sends what they heard through the pipe. `told` counts the yes while it runs."""
    requests = {buyer: side.request(number, buyer) for buyer in buyers}
    pipe.send("ready")
    pipe.recv()
    wait, queue, resting = selectors.DefaultSelector(), list(reversed(buyers)), []
    heard = {YES: [], NO: 0, "tries": 0, "errors": collections.Counter(), "took": []}
    since, began, end = {}, time.monotonic(), time.monotonic() + patience

    def attempt(connection):
        since.setdefault(connection.buyer, time.monotonic())
        heard["tries"] += 1
        try:
            connection.send(requests[connection.buyer])
        except OSError:
            rest(connection)

    def rest(connection):
        heard["errors"]["connection"] += 1
        connection.drop()
        resting.append((time.monotonic() + RETRY_S, connection))

    def following(connection):
        if queue:
            connection.buyer = queue.pop()
            attempt(connection)
        else:
            connection.drop()
            connection.buyer = None

    def take(connection):
        try:
            answer = connection.answer()
        except OSError:
            rest(connection)
            return
        if answer is None:
            return
        verdict = side.verdict(*answer)
        if verdict == AGAIN:
            heard["errors"][str(answer[0])] += 1
            resting.append((time.monotonic() + RETRY_S, connection))
            return
        heard["took"].append(time.monotonic() - since[connection.buyer])
        if verdict == YES:
            heard[YES].append(connection.buyer)
            told.value += 1
            heard["last_yes"] = time.monotonic()
        else:
            heard[NO] += 1
        following(connection)

    everyone = [Connection(side.port, wait) for _ in range(connections)]
    for connection in everyone:
        following(connection)
    late = time.monotonic() + 1
    while any(connection.buyer is not None for connection in everyone) and time.monotonic() < end:
        for key, _ in wait.select(0.01) if wait.get_map() else (time.sleep(RETRY_S) or ()):
            take(key.data)
        now = time.monotonic()
        due, resting[:] = [c for at, c in resting if at <= now], [(at, c) for at, c in resting if at > now]
        for connection in due:
            attempt(connection)
        if now > late:
            late = now + 1
            resters = {connection for _, connection in resting}
            for connection in everyone:
                if connection.socket and connection not in resters and now - connection.at > ANSWER_S:
                    rest(connection)
    heard.update(began=began, ended=time.monotonic(), cpu_s=sum(os.times()[:2]))
    pipe.send(heard)


class Crowd:
    """The buyers of one sale, in as many processes as the load generator has."""

    def __init__(self, side, number, options):
        self.told, self.pipes, self.processes = [], [], []
        for process in range(options.generators):
            told, (mine, its) = multiprocessing.Value("q", 0, lock=False), multiprocessing.Pipe()
            buyers = range(1 + process, options.buyers + 1, options.generators)
            self.processes.append(multiprocessing.Process(target=crowd_of_one_process, daemon=True, args=(
                side, number, buyers, options.connections // options.generators, options.patience, told, its)))
            self.processes[-1].start()
            its.close()  # So that its end is seen here.
            self.told.append(told)
            self.pipes.append(mine)
        for pipe in self.pipes:
            pipe.recv()

    def go(self):
        for pipe in self.pipes:
            pipe.send("go")

    def yes(self):
        return sum(told.value for told in self.told)

    def over(self):
        return all(pipe.poll() for pipe in self.pipes)

    def heard(self):
        all_heard = [pipe.recv() for pipe in self.pipes]
        for process in self.processes:
            process.join()
        return all_heard


# ---- one sale --------------------------------------------------------------------------------------------------------


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else None


def run_sale(side, number, options, victim=None):
    """One sale from opening until nothing more lands; with a victim it is killed while the sale sells."""
    side.open_sale(number, options.stock)
    crowd = Crowd(side, number, options)
    killer = Killer(side, crowd, victim, options.stock)
    before = {name: (pid, cpu_s(pid)) for name, pid in side.pids().items()}
    crowd.go()
    began = time.monotonic()
    while not crowd.over():
        killer.step()
        time.sleep(0.005)
    heard = crowd.heard()
    yes = [buyer for part in heard for buyer in part[YES]]
    landed_at, landed = wait_for_orders(side, number, len(yes), options, killer)
    cpu = {name: cpu_s(pid) - at for name, (pid, at) in before.items()}
    time.sleep(1)
    orders = side.orders(number)
    began = min([part["began"] for part in heard] + [began])
    took = [seconds for part in heard for seconds in part["took"]]
    selling = max([part["last_yes"] for part in heard if "last_yes" in part], default=began) - began
    result = {
        "buyers": options.buyers, "stock": options.stock, "connections": options.connections,
        "yes": len(yes), "no": sum(part[NO] for part in heard), "tries": sum(part["tries"] for part in heard),
        "errors": sum((part["errors"] for part in heard), collections.Counter()),
        "unanswered": options.buyers - len(took),
        "yes_per_s": round(len(yes) / selling) if selling else None,
        "answers_per_s": round(len(took) / (max(part["ended"] for part in heard) - began)),
        "answer_p50_ms": round(1000 * quantile(took, 0.5), 1), "answer_p99_ms": round(1000 * quantile(took, 0.99), 1),
        "orders": sum(orders.values()), "all_landed_s": round(landed_at - began, 2),
        "lost": sum(buyer not in orders for buyer in yes),
        "doubled": sum(count - 1 for count in orders.values()),
        "oversold": max(0, sum(orders.values()) - options.stock),
        "unsold": max(0, min(options.stock, options.buyers) - len(set(orders) | set(yes))),
        "orders_without_yes": len(set(orders) - set(yes)),
        "generator_cpu_s": round(sum(part["cpu_s"] for part in heard), 2)}
    if victim:
        result |= {"killed": victim, "kills": killer.kills}
    else:
        result["cpu_s"] = {name: round(seconds, 2) for name, seconds in cpu.items()}
        result["cpu_us_per_order"] = round(1e6 * sum(cpu.values()) / max(1, landed))
    return result


class Killer:
    """Kills the victim each time the sale has sold a further share, as soon as the victim runs."""

    def __init__(self, side, crowd, victim, stock):
        self.side, self.crowd, self.victim, self.kills = side, crowd, victim, 0
        times = side.kills[victim] if victim else 0
        self.marks = [stock * (mark + 1) // (times + 1) for mark in range(times)]

    def step(self):
        if self.marks and self.crowd.yes() >= self.marks[0] and self.side.runs(self.victim):
            self.marks.pop(0)
            self.side.kill(self.victim)
            self.kills += 1
        self.side.tend()


def wait_for_orders(side, number, expected, options, killer):
    """Until there are as many orders as expected, or none came for --quiet seconds: (when the last came, how many)."""
    landed, changed = -1, time.monotonic()
    while time.monotonic() - changed < options.quiet:
        killer.step()
        now = side.count(number)
        if now != landed:
            landed, changed = now, time.monotonic()
        if landed >= expected:
            break
        time.sleep(0.05)
    return changed, landed


def run_side(side, options):
    say(f"{side.title}, {side.version}")
    report = {"title": side.title, "version": side.version, "durable": side.durable, "settings": side.settings,
              "sales": []}
    try:
        side.start()
        numbers = iter(range(1, 1000))
        smaller = argparse.Namespace(**{**vars(options), "buyers": options.buyers // 4, "stock": options.stock // 4})
        run_sale(side, next(numbers), smaller)  # A warm-up: pools, caches, prepared statements.
        for victim in [None] * options.runs + ([] if options.no_kills else list(side.kills)):
            result = run_sale(side, next(numbers), options, victim)
            report["sales"].append(result)
            say(json.dumps(result))
    finally:
        side.stop()
    return report


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--ours", required=True, help="our binary; a release build")
    parse.add_argument("--checkout", required=True, type=pathlib.Path, help="the other project's git checkout")
    parse.add_argument("--programs", required=True, type=pathlib.Path, help="folder of the other project's programs")
    parse.add_argument("--json", type=pathlib.Path, help="file for the result")
    parse.add_argument("--dir", type=pathlib.Path, help="folder for all data (default: a temporary one)")
    parse.add_argument("--buyers", type=int, default=8000)
    parse.add_argument("--stock", type=int, default=4000)
    parse.add_argument("--connections", type=int, default=64)
    parse.add_argument("--generators", type=int, default=2, help="processes of the load generator")
    parse.add_argument("--runs", type=int, default=2, help="sales without a kill, for each side")
    parse.add_argument("--patience", type=float, default=40, help="seconds until a crowd gives up")
    parse.add_argument("--quiet", type=float, default=12, help="seconds without a new order until the rest is lost")
    parse.add_argument("--no-kills", action="store_true")
    parse.add_argument("--only", choices=["ours", "shipped", "durable"])
    options = parse.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    load = os.getloadavg()[0]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="beside-", dir=options.dir))
    made = {"ours": lambda at: Ours(os.path.abspath(options.ours), at)}
    for redis in Project.redis_settings:
        made[redis] = lambda at, redis=redis: Project(options.checkout, options.programs.resolve(), at, redis)
    sides = []
    try:
        for name, make in made.items():
            if options.only in (None, name):
                at = folder / name
                at.mkdir()
                sides.append(run_side(make(at), options))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    result = {
        "taken": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "cpu": cpu_name(), "load_before": load, "servers": server_versions()},
        "durable": {side["title"]: side["durable"] for side in sides},
        "bars": bars(sides),
        "consistent": not any(sale[what] for side in sides if side["title"] == Ours.title for sale in side["sales"]
                              for what in ("lost", "doubled", "oversold", "unsold", "unanswered")),
        "sides": sides}
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if options.json:
        options.json.write_text(text)
    else:
        print(text, end="")


def bars(sides):
    """Ours against each other side: medians of the sales without a kill. None of them is a bar that must hold."""
    rows = []
    for name, unit in (("yes_per_s", "1/s"), ("all_landed_s", "s"), ("cpu_us_per_order", "us")):
        value = {side["title"]: statistics.median(sale[name] for sale in side["sales"] if "killed" not in sale)
                 for side in sides}
        for title in value.keys() - {Ours.title} if Ours.title in value else ():
            rows.append({"name": f"beside_{name}", "against": title, "value": value[Ours.title], "unit": unit,
                         "baseline": value[title], "ratio": round(value[Ours.title] / value[title], 3), "rule": "none"})
    return rows


def cpu_name():
    found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return found[1] if found else "unknown"


def server_versions():
    packages = ["redis-server", "rabbitmq-server", "mariadb-server"]
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *packages], capture_output=True,
                           text=True).stdout
    return dict(line.split() for line in found.splitlines())


if __name__ == "__main__":
    main()
