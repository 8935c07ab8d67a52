"""Every error that podbot raises on purpose.

::

    PodbotError
     +-- ConfigError       an invalid flag, variable or file              exit 2
     |    +-- MissingRequired, InvalidValue, UnknownKey, MalformedFile,
     |    |   ConfigFileNotFound, UnsafeConfigFile, IllegalCombination,
     |    |   MountRefused, UsageError, TokenFileRefused, AddressUnusable
     +-- ContainerError    the engine, or a container on it               exit 1
     |    +-- EngineNotInstalled, SocketNotFound, PermissionDenied, ConnectionFailed,
     |    |   HealthCheckFailed, EngineGone, UnsupportedEndpoint,
     |    |   ServiceStartFailed, CreateFailed, NameTaken, StartFailed, PortUnusable,
     |    |   StopFailed, RemoveFailed, ExecFailed, UploadFailed,
     |    |   ImageNotFound, ImageBuildFailed, AgentNotInImage,
     |    |   ContainerNotFound, NotOurs, SandboxDied, RequestFailed,
     |    |   EngineStorageFull, CommandSurvived, MachineNotReady, RepairFailed, NoImageBuilder,
     |    |   SandboxPaused, SandboxStopped, AmbiguousName, SessionRuns, KernelLimitReached
     +-- FilesystemError   a host file or directory                       exit 1
     |    +-- PathError, CredentialUnreadable, CredentialsTooLarge,
     |    |   UnsafeDirectory, SessionExists, TokenSessionMissing, DiskFull,
     |    |   UnsafeStore, HistoryNotFound, HistoryInUse,
     |    |   HistoryNotRemoved, SessionKept, SessionNotRestorable,
     |    |   SessionRecordUnknown, LoginFailed, CopyFailed, NoLog,
     |    |   ReportNotFound, ReportsUnreadable, NoGateway, GatewayRefused,
     |    |   AlreadyStarted, GuardTripped (exit 3)
     +-- GitHubError       the App, its key, or an installation token     exit 1
     |    +-- PrivateKeyMissing, PrivateKeyLoadFailed, GitHubUnreachable,
     |    |   GitHubRefused, GitHubBusy, GitHubAnswerInvalid,
     |    |   InstallationUnsuitable, TokenSourceFailed
     +-- CloneError        a clone inside the sandbox                     exit 1
     |    +-- CloneFailed, BranchNotFound, EmptyRepository,
     |    |   RepositoryNotFound, ServerUnreachable, GitNotInImage,
     |    |   TokenUnreadable, TransferFailed, TokenNeeded
     +-- GuestError        the guest in a sandbox, or the channel to it   exit 1
     |    +-- ChannelLost, NoGuest, TooManyChannels (RuntimeError too),
     |    |   CommandRefused, BadWorkingDirectory (ValueError too)
     +-- StreamError       podbot's own stdin, stdout or terminal         exit 1
     |    +-- OutputClosed, ClientBroken, TerminalTooSmall,
     |        NotATerminalCommand
     +-- ShellError        a shell did not run a command                  exit 1
     |    +-- InvalidCommand (ValueError), InvalidWorkingDirectory (ValueError),
     |        CommandBlocked (PermissionError), ShellUnavailable (RuntimeError)
     +-- ToolError         a tool did not do what was asked               exit 1
     |    +-- FileRefused (ValueError), WorkerLost (RuntimeError),
     |        WorkerUnavailable, WorkspaceDied, WorkspaceClosed, WorkspaceInUse
     |        (RuntimeError), ToolValidationError (ValueError),
     |        PromptInvalid (ValueError)
     +-- ExtraUnusable     a package of an extra is missing (ImportError) exit 1

A ContainerError is a RuntimeError as well.

An error has fields such as ``exc.path`` and ``exc.origin``, never only a sentence. ``str(exc)`` is the message followed
by the remedy, which names no command or option of podbot's: the command line adds those. Fields never contain a secret.

The classes use a small base instead of ``@dataclass``, because forty generated ``__init__`` would cost every
``podbot exec`` 15 ms at import.
"""

from podbot.errors.base import PodbotError
from podbot.errors.clone import (
    BranchNotFound,
    CloneError,
    CloneFailed,
    EmptyRepository,
    GitNotInImage,
    RepositoryNotFound,
    ServerUnreachable,
    TokenNeeded,
    TokenUnreadable,
    TransferFailed,
)
from podbot.errors.config import (
    ConfigError,
    ConfigFileNotFound,
    IllegalCombination,
    InvalidValue,
    MalformedFile,
    MissingRequired,
    MountRefused,
    UnknownKey,
    UnsafeConfigFile,
    UsageError,
)
from podbot.errors.container import (
    AgentNotInImage,
    CommandSurvived,
    ConnectionFailed,
    ContainerError,
    ContainerNotFound,
    CreateFailed,
    EngineGone,
    EngineNotInstalled,
    EngineStorageFull,
    ExecFailed,
    HealthCheckFailed,
    ImageBuildFailed,
    ImageNotFound,
    KernelLimitReached,
    MachineNotReady,
    NameTaken,
    NoImageBuilder,
    NotOurs,
    PermissionDenied,
    PortUnusable,
    RemoveFailed,
    RepairFailed,
    RequestFailed,
    SandboxDied,
    SandboxPaused,
    SandboxStopped,
    ServiceStartFailed,
    SocketNotFound,
    StartFailed,
    StopFailed,
    UnsupportedEndpoint,
    UploadFailed,
)
from podbot.errors.copying import CopyFailed
from podbot.errors.extras import ExtraUnusable
from podbot.errors.github import (
    GitHubAnswerInvalid,
    GitHubBusy,
    GitHubError,
    GitHubRefused,
    GitHubUnreachable,
    InstallationUnsuitable,
    PrivateKeyLoadFailed,
    PrivateKeyMissing,
    TokenSourceFailed,
)
from podbot.errors.guest import BadWorkingDirectory, ChannelLost, CommandRefused, GuestError, NoGuest, TooManyChannels
from podbot.errors.history import HistoryInUse, HistoryNotFound, HistoryNotRemoved, UnsafeStore
from podbot.errors.host_files import (
    ClientBroken,
    CredentialsTooLarge,
    CredentialUnreadable,
    DiskFull,
    FilesystemError,
    GuardTripped,
    LoginFailed,
    NotATerminalCommand,
    OutputClosed,
    PathError,
    SessionExists,
    StreamError,
    TerminalTooSmall,
    TokenSessionMissing,
    UnsafeDirectory,
)
from podbot.errors.mcp import AddressUnusable, TokenFileRefused
from podbot.errors.session import (
    AlreadyStarted,
    AmbiguousName,
    GatewayRefused,
    NoGateway,
    NoLog,
    ReportNotFound,
    ReportsUnreadable,
    SessionKept,
    SessionNotRestorable,
    SessionRecordUnknown,
    SessionRuns,
)
from podbot.errors.shell import CommandBlocked, InvalidCommand, InvalidWorkingDirectory, ShellError, ShellUnavailable
from podbot.errors.tool_values import PromptInvalid, ToolValidationError
from podbot.errors.tools import (
    FileRefused,
    ToolError,
    WorkerLost,
    WorkerUnavailable,
    WorkspaceClosed,
    WorkspaceDied,
    WorkspaceInUse,
)

__all__ = [
    "AddressUnusable",
    "AgentNotInImage",
    "AlreadyStarted",
    "AmbiguousName",
    "BadWorkingDirectory",
    "BranchNotFound",
    "ChannelLost",
    "ClientBroken",
    "CloneError",
    "CloneFailed",
    "CommandBlocked",
    "CommandRefused",
    "CommandSurvived",
    "ConfigError",
    "ConfigFileNotFound",
    "ConnectionFailed",
    "ContainerError",
    "ContainerNotFound",
    "CopyFailed",
    "CreateFailed",
    "CredentialUnreadable",
    "CredentialsTooLarge",
    "DiskFull",
    "EmptyRepository",
    "EngineGone",
    "EngineNotInstalled",
    "EngineStorageFull",
    "ExecFailed",
    "ExtraUnusable",
    "FileRefused",
    "FilesystemError",
    "GatewayRefused",
    "GitHubAnswerInvalid",
    "GitHubBusy",
    "GitHubError",
    "GitHubRefused",
    "GitHubUnreachable",
    "GitNotInImage",
    "GuardTripped",
    "GuestError",
    "HealthCheckFailed",
    "HistoryInUse",
    "HistoryNotFound",
    "HistoryNotRemoved",
    "IllegalCombination",
    "ImageBuildFailed",
    "ImageNotFound",
    "InstallationUnsuitable",
    "InvalidCommand",
    "InvalidValue",
    "InvalidWorkingDirectory",
    "KernelLimitReached",
    "LoginFailed",
    "MachineNotReady",
    "MalformedFile",
    "MissingRequired",
    "MountRefused",
    "NameTaken",
    "NoGateway",
    "NoGuest",
    "NoImageBuilder",
    "NoLog",
    "NotATerminalCommand",
    "NotOurs",
    "OutputClosed",
    "PathError",
    "PermissionDenied",
    "PodbotError",
    "PortUnusable",
    "PrivateKeyLoadFailed",
    "PrivateKeyMissing",
    "PromptInvalid",
    "RemoveFailed",
    "RepairFailed",
    "ReportNotFound",
    "ReportsUnreadable",
    "RepositoryNotFound",
    "RequestFailed",
    "SandboxDied",
    "SandboxPaused",
    "SandboxStopped",
    "ServerUnreachable",
    "ServiceStartFailed",
    "SessionExists",
    "SessionKept",
    "SessionNotRestorable",
    "SessionRecordUnknown",
    "SessionRuns",
    "ShellError",
    "ShellUnavailable",
    "SocketNotFound",
    "StartFailed",
    "StopFailed",
    "StreamError",
    "TerminalTooSmall",
    "TokenFileRefused",
    "TokenNeeded",
    "TokenSessionMissing",
    "TokenSourceFailed",
    "TokenUnreadable",
    "TooManyChannels",
    "ToolError",
    "ToolValidationError",
    "TransferFailed",
    "UnknownKey",
    "UnsafeConfigFile",
    "UnsafeDirectory",
    "UnsafeStore",
    "UnsupportedEndpoint",
    "UploadFailed",
    "UsageError",
    "WorkerLost",
    "WorkerUnavailable",
    "WorkspaceClosed",
    "WorkspaceDied",
    "WorkspaceInUse",
]
